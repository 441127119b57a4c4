"""The summary of a submission, for those who decide on it."""

from __future__ import annotations

from dataclasses import replace

from iclbench import RecordStore, run
from iclbench.api.record import GraderReport
from iclbench.leaderboards.submission import examine_all, summary


def test_the_summary_tells_rows_of_a_model_apart(cli, tmp_path):
    for n in (1, 2):
        run("gradient-descent", "least-squares", model_args={"steps": n}, out=tmp_path)
    lines = cli("submit", tmp_path, "--to", tmp_path / "boards").out.splitlines()
    models = {line.split(" | ")[1] for line in lines if "▲ solver" in line}
    assert models == {"gradient-descent steps=1", "gradient-descent steps=2"}


def test_the_summary_says_what_a_language_model_s_record_claims(tmp_path):
    run("averaging", "least-squares", out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    (one,), _ = examine_all([path], RecordStore(tmp_path / "boards"))
    assert "claimed" not in summary([one], [])
    spec = one.record.spec.model_copy(update={"origin": "asked"})
    asked = replace(one, record=one.record.model_copy(update={"spec": spec}))
    claimed = "- claimed, and not asked for again: the answers of language models in 2 records"
    assert claimed in summary([asked, asked], [])
    report = GraderReport(name="openai", model="m")
    graded = replace(one, record=one.record.model_copy(update={"grader": report}))
    assert "the grades of paid graders in 1 record" in summary([graded], [])
    free = GraderReport(name="text-statistics")
    graded = replace(one, record=one.record.model_copy(update={"grader": free}))
    assert "claimed" not in summary([graded], [])


def test_refused_records_are_a_list_of_their_own(tmp_path):
    run("averaging", "least-squares", out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    (one,), _ = examine_all([path], RecordStore(tmp_path / "boards"))
    list_, below = summary([one], ["b.json: its weights are too large"]).split("\n\n")[2:4]
    assert (list_, below) == ("- refused: b.json: its weights are too large", "Reproduce:")
    assert summary([], ["b.json: no"]) == "## No record can be published\n\n- refused: b.json: no\n"
