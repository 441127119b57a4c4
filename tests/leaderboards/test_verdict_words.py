"""Verdicts in words: numbers with their kind, seeds, settings, and counts."""

from __future__ import annotations

import pytest

from iclbench import run
from iclbench.api.config import parse_config
from iclbench.leaderboards import verdict_words as words
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.findings import Finding, Judgement, judge

TASK = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 8}


def finding(**changes) -> Finding:
    content = {
        "records": "small", "source": "nobody", "claim": "c", "criterion": "c",
        "written": "2026-11-23", "compare": "value",
        "first": {"metric": "squared_error", "where": {"model": "lsa"}},
        "reproduced": (0, 1e9), "contradicted": (1e9, 1e9),
    }  # fmt: skip
    return parse_config(Finding, {**content, **changes}, "finding")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    out = tmp_path_factory.mktemp("records")
    return [run(model="lsa", **TASK, recipe="smoke", seeds=2, out=out),
            run(model="zero", **TASK, out=out)]  # fmt: skip


def test_a_list_is_left_out_of_a_setting_as_a_whole(records):
    args = {"dim": 2, "noise": [0.1, 0.2, 0.3], "sizes": [2, 4, 8], "examples": 4}
    main = records[1].main.model_copy(update={"task_args": args})
    record = records[1].model_copy(update={"evaluations": {"main": main}})
    judgement = Judgement(finding(), "reproduced", 1.0, (), (record,))
    about = Descriptions(pytest.fail)
    assert words.setting(judgement, about) == "D\u00a0=\u00a02, N\u00a0=\u00a04"
    assert words.setting(judgement, about, most_arguments=1) == "D\u00a0=\u00a02"


@pytest.mark.parametrize(
    ("number", "changes", "text"),
    [
        (1.7e-5, {}, "squared error 1.7e-5"),
        (0.445, {"first": {"where": {}, "analysis": "a.blocks.0.deviation"}}, "deviation 0.445"),
        (2.8e12, {"compare": "ratio", "second": {"metric": "m", "where": {}}}, "ratio 2.8e12"),
        (None, {}, ""),
    ],
)
def test_a_number_has_its_kind(number, changes, text):
    assert words.number(Judgement(finding(**changes), "reproduced", number)) == text


def test_a_judgement_tells_its_seeds_and_its_setting(records):
    about = Descriptions(pytest.fail)
    trained = judge(finding(), records)
    steps = trained.records[0].spec.recipe_args["steps"]
    assert words.seeds(trained) == "2 seeds"
    assert words.setting(trained, about) == f"{steps:,} steps, D\u00a0=\u00a02, N\u00a0=\u00a04"
    assert words.setting(trained, about, most_arguments=0) == f"{steps:,} steps"
    solver = judge(finding(first={"metric": "squared_error", "where": {"model": "zero"}}), records)
    assert words.seeds(solver) == "no training"
    single = records[0].model_copy(update={"main": None, "seeds": records[0].seeds[:1]})
    assert words.seeds(Judgement(finding(), "reproduced", 1.0, (), (single,))) == "one seed"
    assert words.seeds(judge(finding(), records[1:])) == ""
    lost = [seed.model_copy(update={"diverged_at": 3}) for seed in records[0].seeds]
    failed = records[0].model_copy(update={"seeds": [lost[0], *records[0].seeds[1:]]})
    one = Judgement(finding(), "reproduced", 1.0, (), (failed,))
    assert words.seeds(one) == "2 seeds, 1 diverged"
    other = failed.model_copy(update={"id": "0" * 16})
    both = Judgement(finding(), "reproduced", 1.0, (), (failed, other))
    assert words.seeds(both) == "2 seeds, 2 of 4 diverged"
    twice = Judgement(finding(), "reproduced", 1.0, (), (failed, failed))
    assert words.seeds(twice) == "2 seeds, 1 diverged"


def test_counts_say_how_many_criteria_were_written_after_the_run():
    before, after = (finding(after_run=value) for value in (False, True))
    judgements = [Judgement(after, "reproduced")] * 2 + [Judgement(before, "reproduced")]
    judgements += [Judgement(after, "in kind"), Judgement(after, "not run")]
    assert words.summary(judgements) == (
        "by a criterion written before the run: 1 reproduced; "
        "by criteria written after the run: 2 reproduced, 1 in kind, 1 not run"
    )
    own = finding(own_question=True)
    assert words.summary([Judgement(own, "contradicted")] * 2) == (
        "by criteria written before the run: 2 do not hold"
    )
    changed = finding(changed="The bound was 1.", after_run=True)
    assert words.summary([Judgement(changed, "in kind")]) == (
        "by a criterion changed when the verdict was known: 1 in kind"
    )


def test_verdicts_are_crossed_with_when_the_criterion_was_written():
    before, after = (finding(after_run=value) for value in (False, True))
    judgements = [Judgement(after, "reproduced")] * 2 + [Judgement(before, "in kind")]
    verdicts, lines = words.crossed(judgements)
    assert verdicts == ["reproduced", "in kind"]
    assert [(line.when, line.numbers, line.total) for line in lines] == [
        ("before the run", (0, 1), 1), ("after the run", (2, 0), 2), ("all", (2, 1), 3)
    ]  # fmt: skip
    assert words.foretold(judgements) == (
        "1 of them tested by a criterion written before the run: 1 in kind"
    )
    assert (
        words.foretold(judgements[:2]) == "none of them tested by criteria written before the run"
    )
    verdicts, lines = words.crossed(judgements[:1])
    assert [line.when for line in lines] == ["after the run"]
    assert words.crossed([]) == ([], [])
