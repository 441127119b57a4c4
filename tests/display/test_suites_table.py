"""The table of a suite's scores: a board with the name of a column loses none of it."""

from __future__ import annotations

import pytest

from iclbench import Suite, run
from iclbench.display.suites import overall_table, suite_parts
from iclbench.display.table import Table
from iclbench.leaderboards.suite_score import score_suite


@pytest.mark.parametrize("name", ["score", "model", "low", "regression"])
def test_a_board_named_like_a_column_has_a_column_of_its_own(tmp_path, name):
    board = {"name": name, "task": "least-squares", "task_args": {"dim": 2, "examples": 4},
             "eval_prompts": 16, "chance": "zero"}  # fmt: skip
    suite = Suite(name="tiny", version=1, summary="a board", board=(board,))
    fields = suite.boards[0].request("zero").model_dump()
    table = overall_table(score_suite(suite, {name: [run(out=tmp_path, **fields)]}))
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    (row,) = table.rows
    assert (row["model"], row["low"] is None) == ("zero", False)
    column = name if name == "regression" else f"board:{name}"
    assert names[-1] == column
    assert row[column].value == row["score"].value == 0.0
    assert table.select(column).columns[0].name == column


def test_models_without_a_score_are_in_a_note(tmp_path):
    """Of two boards, one is less than half where three count."""
    boards = tuple(
        {"name": f"b{dim}", "task": "least-squares", "task_args": {"dim": dim, "examples": 4},
         "eval_prompts": 16, "chance": "zero"}
        for dim in (1, 2, 3)
    )  # fmt: skip
    suite = Suite(name="tiny", version=1, summary="three boards", board=boards)
    records = {}
    for board in suite.boards:
        models = ["zero", "averaging", "lsa"] if board.name == "b1" else ["zero"]
        records[board.name] = [
            run(out=tmp_path, **{**board.request(model).model_dump(), "recipe": "smoke"})
            for model in models
        ]
    parts = suite_parts(score_suite(suite, records))
    table = next(part for part in parts if isinstance(part, Table))
    assert [row["model"] for row in table.rows] == ["zero"]
    assert table.notes[-2:] == (
        "no score with open budgets: lsa",
        "no score: 1 that were not trained",
    )
