"""The effect of hyperparameters: a line's rows differ in nothing but what is on the x axis."""

from __future__ import annotations

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.series import series


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


@pytest.fixture(scope="module")
def trained(board):
    """Two records that differ in their layers alone."""
    return [row.record for row in board.rows if row.is_trained]


def changed(record, **changes):
    return record.model_copy(update={"spec": record.spec.model_copy(update=changes)})


def test_a_line_joins_records_that_differ_in_one_setting(trained, about):
    (plot,) = series(trained, about)
    assert plot["title"] == "Mean digits of the error against layers"
    assert [line["x"] for line in plot["lines"]] == [[1, 2]]


def test_nothing_is_drawn_against_seeds_or_prompts(trained, about):
    record = trained[0]
    others = [changed(record, seeds=(0, 1, 2)), changed(record, eval_prompts=9),
              changed(record, eval_seed=7)]  # fmt: skip
    assert series([record, *others], about) == []


def test_records_of_different_tracks_seeds_or_budgets_are_not_joined(trained, about):
    first, second = trained
    for other in (second.model_copy(update={"track": "10m"}), changed(second, seeds=(0, 1, 2)),
                  changed(second, budget="10m")):  # fmt: skip
        assert series([first, other], about) == []


def test_lines_of_different_tracks_are_told_apart(trained, about):
    tracked = [record.model_copy(update={"track": "10m"}) for record in trained]
    (plot,) = series([*trained, *tracked], about)
    assert [line["name"] for line in plot["lines"]] == ["BaseConv", "BaseConv 10m"]


def test_a_default_that_a_spec_omits_is_a_value_like_others(trained, about):
    first, _ = trained
    other = changed(first, recipe_args={**first.spec.recipe_args, "accumulate": 4})
    (plot,) = series([first, other], about)
    assert [line["x"] for line in plot["lines"]] == [[1, 4]]


def test_an_argument_of_the_task_is_drawn_though_its_prompts_differ(trained, about):
    first, _ = trained
    main = first.main.model_copy(update={"digest": "0" * 64})
    other = changed(first, task_args={**first.spec.task_args, "dim": 3})
    other = other.model_copy(update={"evaluations": {"main": main}})
    (plot,) = series([first, other], about)
    assert [line["x"] for line in plot["lines"]] == [[2, 3]]
