"""The table of a task's page: what stands beside a number that is not to be trusted."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from iclbench import run
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.site.task_table import _beside_mean


@pytest.fixture(scope="module")
def row(tmp_path_factory):
    """A row of a task that ranks by the mean of an error."""
    out = tmp_path_factory.mktemp("gradient")
    task_args = {"dim": 2, "examples": 4, "iterates": 2}
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
