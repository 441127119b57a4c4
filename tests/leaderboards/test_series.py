"""The effect of hyperparameters: a line's rows differ in nothing but what is on the x axis."""

from __future__ import annotations

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.series import _merged, series


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
    words = about.task("least-squares").settings(trained[0].main.task_args)
    assert words
    assert plot["title"] == f"Mean digits of the error against layers, {words}"
    (line,) = plot["lines"]
    assert all(a <= y <= b for a, y, b in zip(line["low"], line["y"], line["high"], strict=True))
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
    assert [line["name"] for line in plot["lines"]] == ["BaseConv; BaseConv, 10m"]


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


def test_arguments_of_the_evaluation_that_lines_do_not_share_are_in_their_names(trained, about):
    args = {**trained[0].main.task_args, "dim": 3}
    others = [
        changed(r, task_args={**r.spec.task_args, "dim": 3}).model_copy(
            update={"evaluations": {"main": r.main.model_copy(update={"task_args": args})}}
        )
        for r in trained
    ]
    layers = next(p for p in series([*trained, *others], about) if p["x"]["title"] == "layers")
    assert "D\u00a0=" not in layers["title"]
    # Their scores are the same, but on two boards.
    names = [line["name"] for line in layers["lines"]]
    assert names == ["BaseConv, D\u00a0=\u00a02", "BaseConv, D\u00a0=\u00a03"]


def test_lines_that_lie_on_each_other_are_named_once():
    points = {"a": [0.0, 10.0], "b": [0.01, 10.0], "c": [0.0, 5.0], "d": [0.0]}
    lines = [
        {"name": k, "x": list(range(len(y))), "y": y, "setting": ""} for k, y in points.items()
    ]
    assert [line["name"] for line in _merged(lines)] == ["a; b", "c", "d"]
    assert {name for line in _merged(lines) for name in line} == {"name", "x", "y"}
