"""The level of a record: what ranks, but the digits of an error that may be arbitrarily small."""

from __future__ import annotations

import pytest

from iclbench import run
from iclbench.leaderboards.level import has_digits_level, is_lower_better, level_of


def record_of(out, model, task, **args):
    return run(model=model, task=task, eval_prompts=32, out=out, **args)


def test_an_error_without_a_noise_floor_counts_by_digits_though_its_mean_ranks(tmp_path):
    args = {"task_args": {"dim": 2, "examples": 6, "iterates": 20}}
    record = record_of(tmp_path, "zero", "gradient", **args)
    assert record.ranking.statistic == "mean"
    digits = record.metrics["weight_error"].digits
    assert level_of(record) == (digits.mean, digits.low, digits.high)
    assert not is_lower_better(record)
    target = record.floor["weight_error"]
    assert level_of(record, target).value == target.digits.mean > digits.mean


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
    assert is_lower_better(record) is not in_digits
