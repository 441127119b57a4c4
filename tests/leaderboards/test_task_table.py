"""The table of a task's page: what stands beside a number that is not to be trusted."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial

import pytest

from iclbench import run
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.site.task_table import _beside_mean, _sortable, scientific


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    """A row of a task that ranks by the mean of an error."""
    out = tmp_path_factory.mktemp("gradient")
    task_args = {"dim": 2, "examples": 4, "iterates": 2, "noise": 0.1}
    run(model="zero", task="gradient", task_args=task_args, eval_prompts=32, out=out)
    (board,) = leaderboard(out)
    return board.rows[0]


def test_a_mean_whose_seeds_differ_has_its_median_beside_it(row):
    with_bounds = partial(replace, row)
    apart = with_bounds(bounds=row.bounds._replace(kind="range over seeds"))
    assert _beside_mean(apart).startswith("median ")
    assert _beside_mean(with_bounds(bounds=row.bounds._replace(kind="prompts"))) == ""


def test_digits_need_no_median(row):
    ranking = row.record.ranking.model_copy(update={"statistic": "mean digits"})
    record = row.record.model_copy(update={"ranking": ranking})
    bounds = row.bounds._replace(kind="range over seeds")
    assert _beside_mean(replace(row, record=record, bounds=bounds)) == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [(9.96e11, "1.0·10¹²"), (99_900, "1.0·10⁵"), (1.234e12, "1.2·10¹²"), (123.0, "123"), (0, "0")],
)
def test_large_numbers_have_one_digit_before_the_point(value, text):
    assert re.sub("<[^>]*>", "", scientific(value)) == text


def test_what_is_not_finite_is_sorted_last():
    assert sorted([_sortable(v, "lower") for v in (None, 1.0, math.inf)]) == [1.0, 1e308, 1e308]
    assert sorted([_sortable(v, "higher") for v in (1.0, None)]) == [-1e308, 1.0]
