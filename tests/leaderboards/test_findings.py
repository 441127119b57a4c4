"""Findings: verdicts from records by criteria, and files that are not valid."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iclbench import RecordStore, UsageError, run, sweep
from iclbench.api.config import parse_config
from iclbench.leaderboards import verdict_words as words
from iclbench.leaderboards.findings import (
    Finding,
    Judgement,
    judge,
    read_findings,
)
from iclbench.runs.store import read_values

ROOT = Path(__file__).parents[2]
TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "eval_prompts": 32}  # fmt: skip


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boards")
    grid = [{"model": "lsa", "seeds": 3, "model_args": {"layers": [0, 1]}},
            {"model": ["zero", "ridge"]}]  # fmt: skip
    sweep({"defaults": TINY, "grid": grid}, out=folder / "studies" / "small")
    run(model="zero", **TINY, out=folder / "records")
    return folder


@pytest.fixture(scope="module")
def records(studies):
    from iclbench import RecordStore
    from iclbench.runs.store import read_record

    return [read_record(path) for path in RecordStore(studies / "studies" / "small").paths()]


def value(**where):
    return {"metric": "squared_error", "where": where}


SHALLOW = value(model="lsa", **{"model_args.layers": 0})
DEEP = value(model="lsa", **{"model_args.layers": 1})


def finding(**changes) -> Finding:
    content = {
        "records": "small", "source": "nobody", "claim": "deep is better", "criterion": "twice",
        "written": "2026-11-23", "compare": "ratio", "first": SHALLOW, "second": DEEP,
        "reproduced": (2, float("inf")), "in_kind": (1.1, float("inf")), "contradicted": (0, 0.9),
    }  # fmt: skip
    return parse_config(Finding, {**content, **changes}, "finding")


def test_numbers_are_of_the_statistics_over_all_seeds_and_of_each(records):
    judgement = judge(finding(), records)
    by_layers = {r.spec.model_args["layers"]: r for r in records if r.spec.model == "lsa"}
    medians = [by_layers[layers].metrics["squared_error"].median for layers in (0, 1)]
    assert judgement.number == pytest.approx(medians[0] / medians[1])
    difference = judge(finding(compare="difference"), records)
    assert difference.number == pytest.approx(medians[0] - medians[1])
    seeds = [[m["squared_error"].median for m in by_layers[i].main.seeds] for i in (0, 1)]
    assert judgement.by_seed == pytest.approx([a / b for a, b in zip(*seeds, strict=True)])


@pytest.mark.parametrize(
    ("ranges", "verdict"),
    [
        ({"reproduced": (0.0, 1e9), "in_kind": None, "contradicted": (1e9, 1e9)}, "reproduced"),
        ({"reproduced": (1e8, 1e9), "in_kind": (0, 1e9), "contradicted": (1e9, 1e9)}, "in kind"),
        ({"reproduced": (1e8, 1e9), "in_kind": None, "contradicted": (0, 1e7)}, "contradicted"),
        ({"reproduced": (1e8, 1e9), "in_kind": None, "contradicted": (1e9, 1e9)}, "not shown"),
    ],
)
def test_the_verdict_is_the_range_that_holds_the_number(records, ranges, verdict):
    assert judge(finding(**ranges), records).verdict == verdict


def test_most_seeds_must_agree(records):
    judgement = judge(finding(), records)
    # A range that holds the number over all seeds, and that of one seed at most.
    low, high = judgement.number * 0.999999, judgement.number * 1.000001
    narrow = {"reproduced": (low, high), "in_kind": None, "contradicted": (1e8, 1e9)}
    assert sum(low <= seed <= high for seed in judgement.by_seed) <= 1
    assert judge(finding(**narrow), records).verdict == "not shown"


def test_means_are_judged_beside_medians(records):
    judgement = judge(finding(), records)
    by_layers = {r.spec.model_args["layers"]: r for r in records if r.spec.model == "lsa"}
    means = [by_layers[layers].metrics["squared_error"].mean for layers in (0, 1)]
    assert judgement.of_means.number == pytest.approx(means[0] / means[1])
    assert judgement.of_means.number != pytest.approx(judgement.number)
    of_medians = replace(judgement, verdict="not run")
    assert words.by_means(of_medians).startswith(f"{judgement.of_means.verdict}, ratio ")
    assert words.by_means(replace(judgement, verdict=judgement.of_means.verdict)) == ""
    # A criterion that asks for the mean has nothing beside it.
    mean = {"statistic": "mean"}
    asked = finding(first={**SHALLOW, **mean}, second={**DEEP, **mean})
    assert judge(asked, records).of_means is None


def test_a_flaw_shows_nothing(records):
    """What was seen after the run can take a verdict back, and give none."""
    ranges = {"reproduced": (0, 1e9), "in_kind": None, "contradicted": (2e9, 3e9)}
    assert (
        judge(finding(compare="value", first=DEEP, second=None, **ranges), records).verdict
        == "reproduced"
    )
    judgement = judge(
        finding(compare="value", first=DEEP, second=None, **ranges, flaw="Answering 0 is enough."),
        records,
    )
    assert (judgement.verdict, judgement.of_means.verdict) == ("not shown", "not shown")
    assert (
        judgement.number
        == judge(finding(compare="value", first=DEEP, second=None, **ranges), records).number
    )


def test_a_claim_has_one_verdict(tmp_path):
    """Without a rule, a page would count both runs of a claim, or choose the better one."""
    text = (ROOT / "leaderboards" / "findings.toml").read_text("utf-8")
    for changed in (
        text.replace("shorter_run = true\n", ""),
        text.replace("compare =", "shorter_run = true\ncompare =").replace(
            "shorter_run = true\nshorter_run = true\n", "shorter_run = true\n"
        ),
    ):
        (tmp_path / "findings.toml").write_text(changed, "utf-8")
        with pytest.raises(UsageError, match="without `shorter_run`"):
            read_findings(tmp_path)


def test_a_point_of_a_curve_has_a_number_for_each_seed(tmp_path):
    args = {"task": "least-squares-prefixes", "task_args": {"dim": 2, "examples": 4},
            "recipe": "smoke", "eval_prompts": 16, "out": tmp_path}  # fmt: skip
    record = run(model="transformer", **args, seeds=3)
    store = RecordStore(tmp_path)
    point = {"metric": "prefix_error", "at": 4, "where": {"model": "transformer"}}
    judgement = judge(finding(compare="value", first=point, second=None), [record], store)
    path = store.path_of(record)
    values = read_values(path, {"prefix_error": record.main.values["prefix_error"]})["prefix_error"]
    place = record.main.curves["prefix_error"].values.index(4)
    assert judgement.by_seed == pytest.approx(np.median(values[:, :, place], axis=1))
    assert judgement.of_means.by_seed == pytest.approx(values[:, :, place].mean(axis=1))
    assert judge(finding(compare="value", first=point, second=None), [record]).by_seed == ()
    with pytest.raises(UsageError, match="a mean and a median"):
        finding(first={**point, "statistic": "q99"})


def test_a_solver_has_no_seeds_and_stands_beside_each_seed_of_the_other(records):
    judgement = judge(finding(second=value(model="zero")), records)
    assert len(judgement.by_seed) > 1
    assert min(judgement.by_seed) <= judgement.number <= max(judgement.by_seed)
    back = judge(finding(first=value(model="zero"), second=finding().first), records)
    assert back.by_seed == pytest.approx([1 / one for one in judgement.by_seed])
    alone = judge(finding(first=value(model="zero"), second=value(model="zero")), records)
    assert alone.by_seed == (1.0,)


def test_without_a_record_nothing_was_run_and_several_are_refused(records):
    assert judge(finding(second=value(model="nobody")), records).verdict == "not run"
    with pytest.raises(UsageError, match="2 records have"):
        judge(finding(first=value(model="lsa")), records)
    with pytest.raises(UsageError, match="no metric nothing"):
        judge(finding(first={**SHALLOW, "metric": "nothing"}), records)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"second": None}, "a ratio and a difference need"),
        ({"compare": "value"}, "a value has none"),
        ({"records": "../x"}, "plain name"),
        ({"reproduced": (3, 2)}, "is empty"),
        ({"in_kind": (5, 6)}, "must be so in kind"),
        ({"contradicted": (0, 5)}, "and contradict it"),
        ({"own_question": "perhaps"}, "own_question"),
        ({"own_qestion": True}, "own_question"),
        ({"first": {"where": {}}}, "either of a metric or of an analysis"),
        ({"first": {"where": {}, "analysis": "a.b", "shift": "scale"}}, "has no shift"),
    ],
)
def test_invalid_findings_are_refused(changes, reason):
    with pytest.raises(UsageError, match=reason):
        finding(**changes)


def test_a_number_may_be_of_a_shift(tmp_path):
    shown = run(model="zero", **TINY, shift=["values-triple"], out=tmp_path)
    first = {"metric": "squared_error", "where": {"model": "zero"}}
    ranges = {"reproduced": (8.9, 9.1), "in_kind": None, "contradicted": (0, 1)}
    shifted = finding(first={**first, "shift": "values-triple"}, second=first, **ranges)
    # Targets three times as large have squared errors nine times as large where 0 is predicted.
    assert judge(shifted, [shown]).verdict == "reproduced"
    with pytest.raises(UsageError, match="not evaluated under other"):
        judge(finding(first={**first, "shift": "other"}, second=first), [shown])


def test_build_writes_the_page_of_the_findings(cli, studies, tmp_path):
    boards = Path(shutil.copytree(studies, tmp_path / "boards"))
    text = (ROOT / "leaderboards" / "findings.toml").read_text("utf-8")
    (boards / "findings.toml").write_text(text, "utf-8")
    assert cli("leaderboard", "build", boards, "--no-parquet").code == 0
    page = (boards / "findings.md").read_text("utf-8")
    findings = read_findings(boards)
    claims = len(words.claims([Judgement(one, "not run") for one in findings]))
    assert f"\n{claims} claims of papers, " in page
    assert re.search(rf"^\| all +\| +{claims} \| +{claims} \|$", page, re.M)
    own, shorter = words.own_questions, words.shorter_runs
    kinds = {"tests of the same claims": shorter, "own questions": own}
    for name, members_of in kinds.items():
        count = len(members_of([Judgement(one, "not run") for one in findings]))
        verdicts = re.search(f"{count} {name}[^,]*, ([^.]*)\\.", page)[1]
        # Those written before the run, those written after it, and those that were changed.
        assert sum(int(number) for number in re.findall(r"(\d+) not run", verdicts)) == count
    assert "| **not run** " in page
    (boards / "findings.toml").write_text("[[finding]]\n")
    failed = cli("leaderboard", "build", boards, "--no-parquet")
    assert failed.code == 2
    assert "findings.toml" in failed.err


def test_a_record_is_told_by_what_it_lacks(records):
    zero = next(r for r in records if r.spec.model == "zero")
    spec = zero.spec.model_copy(update={"model_args": {"normalize": True}})
    other = zero.model_copy(update={"spec": spec})
    known = {"compare": "value", "second": None}
    lacking = {"lacks": ["model_args.normalize"]}
    with pytest.raises(UsageError, match="2 records have"):
        judge(finding(first=value(model="zero"), **known), [other, zero])
    told = judge(finding(first=value(model="zero") | lacking, **known), [other, zero])
    assert told.number == zero.metrics["squared_error"].median
    assert (
        judge(finding(first=value(model="zero") | lacking, **known), [other]).verdict == "not run"
    )
    misspelt = {"lacks": ["model_args.normalise"]}
    with pytest.raises(UsageError, match=r"no record has the field model_args\.normalise"):
        judge(finding(first=value(model="zero") | misspelt, **known), [other, zero])
