"""The numbers of a finding by seed: which seeds are paired, how many must agree, odd numbers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from test_findings import finding

from iclbench import RecordStore, run
from iclbench.api.config import parse_config
from iclbench.leaderboards import values
from iclbench.leaderboards.findings import _pairs, _verdict, judge
from iclbench.leaderboards.values import Value, numbers_of
from iclbench.leaderboards.verdict_words import lowered


def test_half_of_the_seeds_are_not_most():
    asked = finding(compare="value", second=None)
    assert _verdict(asked, 3.0, (3.0, 3.0, 1.0, 1.0)) != "reproduced"
    assert _verdict(asked, 3.0, (3.0, 3.0, 3.0, 1.0)) == "reproduced"


@pytest.mark.parametrize(
    ("ranges", "verdict", "reason"),
    [
        ({"reproduced": (0.0, 1e9), "in_kind": None, "contradicted": (1e9, 1e9)}, "in kind",
         "One seed shows it in kind at most."),
        ({"reproduced": (1e8, 1e9), "in_kind": None, "contradicted": (0, 1e7)}, "not shown",
         "One seed contradicts nothing."),
        ({"reproduced": (1e8, 1e9), "in_kind": (0, 1e9), "contradicted": (1e9, 1e9)}, "in kind",
         ""),
    ],
)  # fmt: skip
def test_one_trained_seed_shows_a_claim_in_kind_and_contradicts_none(
    tmp_path, ranges, verdict, reason
):
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke"}
    trained = run(model="lsa", **args, eval_prompts=16, seeds=1, out=tmp_path)
    solver = run(model="zero", **args, eval_prompts=16, out=tmp_path)
    where = {"metric": "squared_error", "where": {"model": "lsa"}}
    asked = finding(compare="value", first=where, second=None, **ranges)
    judgement = judge(asked, [trained])
    assert (judgement.verdict, lowered(judgement)) == (verdict, reason)
    of_solver = finding(
        compare="value", first={**where, "where": {"model": "zero"}}, second=None, **ranges
    )
    without = judge(of_solver, [solver])
    assert (without.verdict == verdict, lowered(without)) == (not reason, "")


@pytest.mark.parametrize(
    ("seeds", "pairs"),
    [
        ((0, 1), [(1.0, 3.0), (2.0, 4.0)]),
        ((1, 0), [(1.0, 4.0), (2.0, 3.0)]),
        ((0, 2), [(1.0, 3.0)]),
        ((2, 3), []),
    ],
)
def test_only_numbers_of_equal_seeds_are_paired(seeds, pairs):
    records = [
        SimpleNamespace(seeds=[SimpleNamespace(seed=seed) for seed in those])
        for those in ((0, 1), seeds)
    ]
    assert list(_pairs(records, [[1.0, 2.0], [3.0, 4.0]])) == pairs


def test_a_number_of_an_analysis_is_the_median_over_seeds():
    number = parse_config(Value, {"analysis": "m.x", "where": {}}, "value")
    record = SimpleNamespace(seeds=[0, 1, 2], analyses={"m": [{"x": 1.0}, {"x": 2.0}, {"x": 9.0}]})
    assert numbers_of(number, record, "file") == (2.0, [1.0, 2.0, 9.0])


def test_a_prompt_without_a_number_counts_as_infinite_at_a_point_of_a_curve(tmp_path, monkeypatch):
    args = {"task": "least-squares-prefixes", "task_args": {"dim": 2, "examples": 4}}
    record = run(model="zero", **args, eval_prompts=3, out=tmp_path)
    point = parse_config(Value, {"metric": "prefix_error", "at": 1, "where": {}}, "value")
    numbers = np.ones((1, 3, len(record.curves["prefix_error"].values)))
    numbers[0, 0] = np.nan
    monkeypatch.setattr(values, "read_values", lambda *_: {"prefix_error": numbers})
    assert numbers_of(point, record, "file", RecordStore(tmp_path))[1] == [1.0]


def test_a_fraction_that_is_not_known_shows_nothing(tmp_path):
    """For all that is known, it may be the worst: it is not in the range from 0.5 to infinity."""
    record = run(model="lookup", task="mqar", eval_prompts=8, out=tmp_path)
    unknown = record.metrics["accuracy"].model_copy(update={"mean": None})
    metrics = {**record.metrics, "accuracy": unknown}
    main = record.main.model_copy(update={"metrics": metrics, "seeds": [metrics]})
    lost = record.model_copy(update={"evaluations": {"main": main}})
    value = {"metric": "accuracy", "statistic": "mean", "where": {"model": "lookup"}}
    ranges = {"reproduced": (0.5, float("inf")), "in_kind": None, "contradicted": (0.0, 0.4)}
    asked = finding(compare="value", first=value, second=None, **ranges)
    assert judge(asked, [record]).verdict == "reproduced"
    assert judge(asked, [lost]).verdict == "not shown"


def test_a_ratio_to_an_error_that_is_lost_shows_nothing(tmp_path):
    record = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)
    unknown = record.metrics["squared_error"].model_copy(update={"mean": None})
    metrics = {**record.metrics, "squared_error": unknown}
    main = record.main.model_copy(update={"metrics": metrics, "seeds": [metrics]})
    lost = record.model_copy(update={"evaluations": {"main": main}})
    other = run(model="averaging", task="least-squares", eval_prompts=8, out=tmp_path)
    first, second = (
        {"metric": "squared_error", "statistic": "mean", "where": {"model": model}}
        for model in ("averaging", "zero")
    )
    ranges = {"reproduced": (0.0, 2.0), "in_kind": None, "contradicted": (9.0, 99.0)}
    asked = finding(compare="ratio", first=first, second=second, **ranges)
    assert judge(asked, [other, record]).verdict == "reproduced"
    assert judge(asked, [other, lost]).verdict == "not shown"


def test_one_trained_seed_beside_another_record_shows_a_claim_in_kind(tmp_path):
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke"}
    trained = run(model="lsa", **args, eval_prompts=16, seeds=1, out=tmp_path)
    solver = run(model="zero", **args, eval_prompts=16, out=tmp_path)
    values = [{"metric": "squared_error", "where": {"model": m}} for m in ("lsa", "zero")]
    asked = finding(compare="ratio", first=values[0], second=values[1],
                    reproduced=(0.0, 1e9), in_kind=None, contradicted=(1e9, 1e9))  # fmt: skip
    assert judge(asked, [trained, solver]).verdict == "in kind"
