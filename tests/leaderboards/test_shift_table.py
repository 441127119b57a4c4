"""The lines of shifts: errors under a shift that scales the targets, relative to their size."""

from __future__ import annotations

import math

import pytest

from iclbench import leaderboard, run
from iclbench.display.shifts import shift_matrix
from iclbench.leaderboards.shift_table import _is_lost, shift_lines


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_relative_lines_are_of_errors_divided_by_the_targets_size(tmp_path, noise):
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4, "noise": noise}}
    record = run(model="zero", **args, eval_prompts=32, shift=["values-triple"], out=tmp_path)
    (board,) = leaderboard(tmp_path)
    _, plain, relative = shift_lines(board)
    size = record.evaluations["values-triple"].target_size
    assert size > 1
    # Squared errors are divided by the size squared, which adds digits of the error's root.
    expected = plain.cells[0] / size**2 if noise else plain.cells[0] + math.log10(size)
    assert relative.cells[0] == pytest.approx(expected)
    interval, of_relative = plain.intervals[0], relative.intervals[0]
    statistics = record.evaluations["values-triple"].metrics["squared_error"]
    bounds = statistics if noise else statistics.digits
    assert interval == pytest.approx((bounds.low, bounds.high))
    moved = [bound / size**2 if noise else bound + math.log10(size) for bound in interval]
    assert of_relative == pytest.approx(moved)
    assert of_relative[0] < relative.cells[0] < of_relative[1]
    assert plain.score == ("mean squared_error" if noise else "digits")


def test_a_score_of_lost_answers_is_a_bound_without_an_interval(tmp_path):
    """Descent that diverges has the largest error there is, for every prompt."""
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32}
    lost = {"steps": 40, "step_size": 50.0}
    run(model="gradient-descent", model_args=lost, **args, shift=["values-triple"], out=tmp_path)
    run(model="zero", **args, shift=["values-triple"], out=tmp_path)
    (board,) = leaderboard(tmp_path)
    for line in shift_lines(board):
        assert sorted(line.lost) == [False, True]
        assert line.bound == "≤"
        assert line.intervals[line.lost.index(True)] is None
        assert line.intervals[line.lost.index(False)] is not None
    table = shift_matrix(board)
    assert table.notes[-1].startswith("≤ and ≥: half of the answers or more are lost")
    texts = [cell.text for row in table.rows for cell in row.values() if hasattr(cell, "text")]
    assert sum(text.startswith("≤ -") for text in texts) == 3


def test_a_floor_that_may_be_beaten_is_called_a_target(tmp_path):
    run(model="zero", task="gradient", eval_prompts=32, shift=["all"], out=tmp_path)
    (board,) = leaderboard(tmp_path)
    assert {line.floor_name for line in shift_lines(board)} == {"target"}
    assert all("(target)" in row["floor"].text for row in shift_matrix(board).rows)


def test_a_shift_that_brings_noise_is_scored_by_its_mean_error(tmp_path):
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}}
    run(model="zero", **args, eval_prompts=32, shift=["noisy"], out=tmp_path)
    (board,) = leaderboard(tmp_path)
    plain, noisy = shift_lines(board)
    assert (plain.score, plain.bound) == ("digits", "≤")
    assert (noisy.score, noisy.bound) == ("mean squared_error", "≥")
    shifts = [row["shift"].text for row in shift_matrix(board).rows]
    assert shifts == ["as in training", "noisy (mean squared_error)"]


def test_a_model_without_any_error_has_lost_no_answer(tmp_path):
    record = run(model="zero", task="least-squares", eval_prompts=32, out=tmp_path)
    name = record.ranking.metric
    exact = record.metrics[name].model_copy(update={"median": 0.0, "max": 0.0})
    main = record.main.model_copy(update={"metrics": {**record.metrics, name: exact}})
    assert not _is_lost(main, record.ranking)


def test_answers_that_are_all_rounded_correctly_are_not_lost(tmp_path):
    record = run(model="zero", task="least-squares", eval_prompts=32, out=tmp_path)
    name = record.ranking.metric

    def of_constant(error):
        constant = {"median": error, "max": error}
        metrics = {name: record.metrics[name].model_copy(update=constant)}
        least = record.main.floor.metrics[name].model_copy(update={"median": 1e-15})
        floor = record.main.floor.model_copy(update={"metrics": {name: least}})
        return record.main.model_copy(update={"metrics": metrics, "floor": floor})

    assert not _is_lost(of_constant(1e-15), record.ranking)
    assert _is_lost(of_constant(1e6), record.ranking)
