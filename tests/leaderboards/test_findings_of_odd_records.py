"""A record that makes a finding ambiguous is reported, and keeps no page from being built."""

from __future__ import annotations

import pytest

from iclbench import RecordStore, run
from iclbench.leaderboards.findings import judgements

FINDINGS = """
[[finding]]
records = "small"
source = "nobody"
claim = "Zero is {claim}."
criterion = "any"
written = 2026-11-23
compare = "value"
first = {{ metric = "squared_error", where = {{ model = "{model}" }} }}
reproduced = [0, inf]
contradicted = [inf, inf]
"""


def test_a_copy_of_a_record_under_another_name_does_not_count(tmp_path):
    out = tmp_path / "studies" / "small"
    run(model="zero", task="least-squares", eval_prompts=8, out=out)
    (path,) = RecordStore(out).paths()
    (tmp_path / "findings.toml").write_text(FINDINGS.format(claim="0", model="zero"))
    path.with_name(f"zero-{'0' * 16}.json").write_bytes(path.read_bytes())
    refused = []
    (judgement,) = judgements(tmp_path, refused.append)
    assert judgement.verdict == "reproduced"
    assert len(refused) == 1


def test_the_other_findings_are_judged(tmp_path):
    small = {"task": "least-squares", "eval_prompts": 8, "out": tmp_path / "studies" / "small"}
    for dim in (2, 3):
        run(model="zero", task_args={"dim": dim, "examples": 4}, **small)
    run(model="averaging", task_args={"dim": 2, "examples": 4}, **small)
    texts = [FINDINGS.format(claim=m, model=m) for m in ("zero", "averaging")]
    (tmp_path / "findings.toml").write_text("".join(texts))
    refused = []
    ambiguous, clear = judgements(tmp_path, refused.append)
    assert (ambiguous.verdict, clear.verdict) == ("not run", "reproduced")
    (line,) = refused
    assert "2 records have {'model': 'zero'}" in line
    assert "Zero is zero." in line


def test_a_list_of_toml_is_compared_with_the_fields_of_a_record(tmp_path):
    small = {"task": "least-squares", "eval_prompts": 8, "out": tmp_path / "studies" / "small"}
    for seeds in (1, 2):
        run(model="transformer", recipe="smoke", seeds=seeds, recipe_args={"steps": 2}, **small)
    text = FINDINGS.format(claim="0", model="zero").replace('model = "zero"', "seeds = [0, 1]")
    (tmp_path / "findings.toml").write_text(text)
    (judgement,) = judgements(tmp_path, pytest.fail)
    assert judgement.verdict == "reproduced"
