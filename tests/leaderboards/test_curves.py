"""Learning curves: the table of all rows, and what digits cost."""

from __future__ import annotations

import io

import pandas as pd
import pytest

from iclbench import UsageError, run
from iclbench.api.costs import ValidationCurve
from iclbench.api.spec import canonical_json
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.curves import Cost, cost_of_digits, curves_table, drawn_curve
from iclbench.leaderboards.figures.draw import draw
from iclbench.sweeps.figure import Figure


def curve(*by_seed, statistic="mean digits", operations=True):
    points = range(1, len(by_seed[0]) + 1)
    return ValidationCurve(
        metric="squared_error",
        statistic=statistic,
        seed=1,
        prompts=64,
        steps=[20 * i for i in points],
        seconds=[0.5 * i for i in points],
        operations=[1e6 * i if operations else None for i in points],
        **{name: [list(scores) for scores in by_seed] for name in ("mean", "q05", "median", "q95")},
        share=0.01,
    )


def test_the_cost_of_digits_is_that_of_the_first_point_whose_median_seed_reaches_them():
    measured = curve([0.0, 1.0, 2.0, 3.0], [0.0, 0.5, 2.5, 3.5], [0.0, 3.0, 1.0, 0.0])
    assert cost_of_digits(measured, 0.0) == Cost(20, 0.5, 1e6)
    assert cost_of_digits(measured, 0.9) == Cost(40, 1.0, 2e6)
    assert cost_of_digits(measured, 2.0) == Cost(60, 1.5, 3e6)
    assert cost_of_digits(measured, 3.1) is None


def test_a_later_fall_does_not_count():
    assert cost_of_digits(curve([1.0, 4.0, 2.0]), 3.0) == Cost(40, 1.0, 2e6)


def test_a_seed_that_is_not_finite_is_worse_than_any():
    assert cost_of_digits(curve([2.0, 2.0], [None, 2.0], [None, None]), 1.0) == Cost(40, 1.0, 2e6)
    assert cost_of_digits(curve([9.0], [None]), 1.0) is None


def test_unknown_operations_stay_unknown():
    assert cost_of_digits(curve([1.0], operations=False), 1.0) == Cost(20, 0.5, None)


def test_a_task_that_ranks_by_another_number_has_no_digits():
    assert cost_of_digits(curve([5.0], statistic="mean"), 1.0) is None


def test_a_curve_without_points_costs_nothing_and_has_no_digits():
    assert cost_of_digits(curve([], []), 1.0) is None


def test_a_curve_is_a_line_if_it_has_two_points():
    class WithCurve:
        def __init__(self, validation_curve):
            self.validation_curve = validation_curve

    line = curve([1.0, 2.0])
    assert drawn_curve(WithCurve(line)) is line
    for other in (None, curve([]), curve([1.0])):
        assert drawn_curve(WithCurve(other)) is None


def test_columns_of_a_curve_have_one_length():
    content = curve([1.0, 2.0]).model_dump()
    for change in ({"steps": [20]}, {"mean": [[1.0]]}, {"q05": [[1.0, 2.0], [1.0, 2.0]]}):
        with pytest.raises(ValueError, match="differ in length"):
            ValidationCurve(**{**content, **change})


def test_the_table_has_a_line_for_each_seed_and_point(built):
    table = pd.read_parquet(io.BytesIO((built / "curves.parquet").read_bytes()))
    records = [row.record for board in leaderboard(built / "records") for row in board.rows]
    pd.testing.assert_frame_equal(table, curves_table(records), check_dtype=False)
    trained = {record.id: record for record in records if record.spec.origin == "trained"}
    assert set(table["id"]) == set(trained)
    for run_id, lines in table.groupby("id"):
        curve = trained[run_id].validation_curve
        assert len(lines) == 2 * len(curve.steps)
        last = lines[(lines.seed == 1) & (lines.step == curve.steps[-1])].iloc[0]
        assert last["mean"] == curve.mean[1][-1]
        assert last.operations == trained[run_id].operations.training
        # The facts by which its row is found in the table of rows.
        assert last.task_args == canonical_json(trained[run_id].main.task_args)
        assert last.evaluation_digest == trained[run_id].main.digest


def test_a_curve_without_points_is_not_drawn(tmp_path):
    tiny = {"task_args": {"dim": 2, "examples": 4}, "recipe_args": {"steps": 2}}
    fields = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 16, **tiny}
    record = run(model="baseconv", **fields, out=tmp_path)
    empty = record.model_copy(update={"validation_curve": curve([])})
    figure = Figure(x="operations", lines=("model", "seeds"))
    assert len(draw(figure, [record, empty]).data) == len(draw(figure, [record]).data) == 1
    with pytest.raises(UsageError, match="needs records of trainings with validation"):
        draw(figure, [empty])
