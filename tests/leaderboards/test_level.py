"""The level of a record: what ranks, but the digits of an error that may be arbitrarily small."""

from __future__ import annotations

import math

import pytest

from iclbench import Suite, leaderboard, run
from iclbench.leaderboards.level import (
    has_digits_level,
    is_lower_better,
    level_name,
    level_of,
)
from iclbench.leaderboards.scale import board_scale
from iclbench.leaderboards.suite_score import score_suite


def record_of(out, model, task, **args):
    return run(model=model, task=task, eval_prompts=32, out=out, **args)


def test_an_error_without_a_noise_floor_counts_by_the_digits_of_the_mean_that_ranks(tmp_path):
    args = {"task_args": {"dim": 2, "examples": 6, "iterates": 20, "noise": 0.1}}
    record = record_of(tmp_path, "zero", "gradient", **args)
    assert level_name(record) == "digits of the mean"
    error = record.metrics["weight_error"]
    level = level_of(record)
    expected = [-math.log10(e) / 2 for e in (error.mean, error.high, error.low)]
    assert level == pytest.approx(expected)
    assert level.low < level.value < level.high
    assert not is_lower_better(record)
    target = record.floor["weight_error"]
    assert level_of(record, target).value == pytest.approx(-math.log10(target.mean) / 2)


@pytest.mark.parametrize("mean", [None, 0.0])
def test_a_mean_without_finite_digits_has_no_level(tmp_path, mean):
    record = record_of(
        tmp_path,
        "zero",
        "gradient",
        task_args={"dim": 2, "examples": 6, "iterates": 5, "noise": 0.1},
    )
    error = record.metrics["weight_error"].model_copy(update={"mean": mean, "low": mean})
    assert level_of(record, error)._replace(low=None) == (None, None, None)


@pytest.mark.parametrize(
    ("model", "task", "args", "in_digits"),
    [
        ("zero", "least-squares", {}, True),
        # Its floor is the noise: half of chance's error is half of the way.
        ("zero", "least-squares", {"task_args": {"noise": 0.5}}, False),
        ("class-frequency", "categorical", {}, False),
    ],
)
def test_other_levels_are_what_ranks(tmp_path, model, task, args, in_digits):
    record = record_of(tmp_path, model, task, **args)
    assert has_digits_level(record) is in_digits
    score = record.ranking.score(record.metrics[record.ranking.metric])
    assert level_of(record).value == score
    assert level_name(record) == record.ranking.statistic
    assert is_lower_better(record) is not in_digits


def test_a_range_over_seeds_is_no_interval(tmp_path):
    record = record_of(tmp_path, "zero", "least-squares")
    statistics = record.metrics[record.ranking.metric]
    assert None not in level_of(record, statistics)
    reached = statistics.digits.model_copy(update={"interval": "range over seeds"})
    level = level_of(record, statistics.model_copy(update={"digits": reached}))
    assert level == (reached.mean, None, None)


def test_validation_chooses_by_what_ranks(tmp_path):
    """Its curve holds the mean error, of which less is better, though more digits are."""
    task_args = {"dim": 2, "examples": 6, "iterates": 5, "noise": 0.1}
    board = {"name": "descent", "task": "gradient", "task_args": task_args}
    suite = Suite(
        name="tiny", version=1, summary="one", defaults={"chance": "zero"}, board=(board,)
    )
    records = [
        record_of(tmp_path, "baseconv", "gradient", task_args=task_args, recipe="smoke",
                  recipe_args={"steps": steps}, seeds=1)
        for steps in (1, 60)
    ]  # fmt: skip
    last = {r.id: r.validation_curve.mean[0][-1] for r in records}
    (entry,) = score_suite(suite, {"descent": records}).entries
    assert entry.records["descent"].id == min(last, key=last.get)


def test_an_interval_that_a_heavy_tail_makes_unreliable_gives_no_bounds(tmp_path):
    record = record_of(tmp_path, "zero", "least-squares", task_args={"noise": 0.5})
    error = record.metrics["squared_error"]
    assert level_of(record, error.model_copy(update={"reliable": True})).low is not None
    level = level_of(record, error.model_copy(update={"reliable": False}))
    assert level == (error.mean, None, None)


def test_without_a_row_of_chance_only_digits_begin_at_0(tmp_path):
    run("kernel-regression", "categorical", eval_prompts=32, out=tmp_path)
    run("least-squares-qr", "least-squares", eval_prompts=32, out=tmp_path)
    chances = {b.rows[0].record.spec.task: board_scale(b).chance for b in leaderboard(tmp_path)}
    assert chances == {"categorical": None, "least-squares": 0.0}
