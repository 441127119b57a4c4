"""Differences of two rows: which model is better needs more than one trained seed."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench import UsageError, compare, run
from iclbench.api.record import GraderReport
from iclbench.leaderboards import pairs
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.formats import difference

ARGS = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
        "eval_prompts": 64}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trained row with one seed and one with three, and a solver that is far better."""
    out = tmp_path_factory.mktemp("pairs")
    for seeds in ((0,), (1, 2, 3)):
        run(model="lsa-tokens", **ARGS, seeds=seeds, out=out)
    run(model="least-squares-qr", **ARGS, out=out)
    return out


def test_one_trained_seed_says_of_no_model_that_it_is_better(folder):
    (board,) = leaderboard(folder)
    rows = {(r.spec.origin, len(r.seeds)): r for r in board.records}
    one, three, solver = rows["trained", 1], rows["trained", 3], rows["solver", 1]
    lines = [compare(row, solver).loc["squared_error"] for row in (one, three)]
    assert all(line.p < 0.05 for line in lines)
    assert [line.better for line in lines] == ["", "b"]


def test_a_difference_to_one_seed_has_the_mark_of_one_seed(folder):
    (board,) = leaderboard(folder)
    (row,) = [row for row in board.rows if row.mark_above and row.above]
    scale = row.record.ranking.scale
    assert difference(row.above, scale, row.mark_above).endswith("] †")
    assert "†" not in difference(row.above, scale)


def test_rows_with_other_targets_on_the_same_draws_are_not_compared(tmp_path):
    args = {"task": "least-squares", "eval_prompts": 16, "out": tmp_path}
    query, weights = (
        run(model="zero", task_args={"dim": 2, "target": target}, **args)
        for target in ("query", "weights")
    )
    assert query.main.digest == weights.main.digest
    with pytest.raises(UsageError, match="their task arguments differ"):
        compare(query, weights)


def test_records_of_two_dtypes_are_not_compared(tmp_path):
    pair = [run(model="zero", **ARGS, dtype=name, out=tmp_path) for name in ("float32", "float64")]
    assert pair[0].main.digest == pair[1].main.digest
    with pytest.raises(UsageError, match="their dtypes differ"):
        compare(*pair)


def test_the_higher_accuracy_is_better_where_it_ranks(tmp_path):
    args = {"task": "mqar", "task_args": {"vocabulary": 512}, "eval_prompts": 20, "out": tmp_path}
    solved, guessed = (run(model=model, **args) for model in ("lookup", "context-guess"))
    line = compare(solved, guessed).loc["accuracy"]
    assert (line.difference > 0, line.better) == (True, "a")


def test_rows_are_compared_by_what_their_board_ranks_by(tmp_path):
    """A task with a Bayes floor ranks by the mean, in which few bad draws count most."""
    args = {"task": "ridge", "task_args": {"noise": 0.5}, "eval_prompts": 64, "out": tmp_path}
    pair = [run(model=model, **args) for model in ("averaging", "zero")]
    (board,) = leaderboard(tmp_path)
    scores = {row.record.spec.model: row.score for row in board.rows}
    line = compare(*pair).loc[board.ranking.metric]
    assert line.statistic == board.ranking.statistic.replace("_", " ")
    assert [line.a, line.b] == pytest.approx([scores["averaging"], scores["zero"]])


def test_digits_within_one_of_the_attainable_count_as_that(folder):
    (board,) = leaderboard(folder)
    solver = next(row for row in board.rows if not row.is_trained)
    assert solver.score > solver.ranked.mean()
    line = compare(solver.record, board.rows[0].record).loc["squared_error"]
    assert line.a == pytest.approx(solver.ranked.mean())


def test_prompts_whose_grading_failed_for_one_are_left_out_of_a_comparison(tmp_path, monkeypatch):
    args = {"task": "mqar", "task_args": {"vocabulary": 512}, "eval_prompts": 64, "out": tmp_path}
    first, second = (run(model=model, **args) for model in ("lookup", "context-guess"))
    read = pairs.prompt_values

    def partly(path, record, metric):
        measured = read(path, record, metric)
        measured[:, :32] = np.nan if path == first.path else 1e3
        return measured

    monkeypatch.setattr(pairs, "prompt_values", partly)
    # In any other metric than a grade, what is not finite is as bad as it can be.
    line = compare(first, second).loc["accuracy"]
    assert np.isnan([line.a, line.difference, line.low, line.high, line.p]).all()
    assert line.better == ""
    monkeypatch.setattr(pairs, "GRADE", "accuracy")
    line = compare(first, second).loc["accuracy"]
    assert np.isfinite([line.a, line.b, line.difference, line.low, line.high, line.p]).all()
    # What is left out of one is left out of the other.
    assert 0 <= line.b <= 1


def test_grades_of_two_graders_are_not_compared(tmp_path, monkeypatch):
    args = {"task": "mqar", "task_args": {"vocabulary": 512}, "eval_prompts": 8, "out": tmp_path}
    first, second = (run(model=model, **args) for model in ("lookup", "context-guess"))
    monkeypatch.setattr(pairs, "GRADE", "accuracy")
    assert "accuracy" in compare(first, second).index
    graded = [
        record.model_copy(update={"grader": GraderReport(name=name)})
        for record, name in ((first, "strict"), (second, "kind"))
    ]
    assert "accuracy" not in compare(*graded).index
    assert "accuracy" in compare(graded[0], graded[0]).index


def test_no_row_is_called_better_by_a_mean_that_few_prompts_dominate(folder):
    (board,) = leaderboard(folder)
    rows = {(r.spec.origin, len(r.seeds)): r for r in board.records}
    three, solver = rows["trained", 3], rows["solver", 1]
    line = compare(three, solver).loc["squared_error"]
    assert (line.better, line.note) == ("b", "")
    digits = three.metrics["squared_error"].digits.model_copy(
        update={"interval": "range over seeds"}
    )
    statistics = three.metrics["squared_error"].model_copy(update={"digits": digits})
    main = three.main.model_copy(update={"metrics": {"squared_error": statistics}})
    unsure = three.model_copy(update={"evaluations": {"main": main}})
    line = compare(unsure, solver).loc["squared_error"]
    assert (line.better, line.note) == ("", "a mean that few values or seeds dominate")
    assert line.p < 0.05
