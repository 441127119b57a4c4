"""Boards: which records are comparable, their order, and what tables show of them."""

from __future__ import annotations

import math

import pytest

import iclbench
from iclbench import RecordError, RecordStore, run
from iclbench.leaderboards.board import boards
from iclbench.leaderboards.tables import render
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 256}


@pytest.fixture(scope="module")
def board(leaderboards):
    all_boards = iclbench.leaderboard(leaderboards / "records")
    assert [(b.task, b.dtype, len(b.rows)) for b in all_boards] == [
        ("categorical", "float32", 1),
        ("least-squares", "float32", 5),
        ("least-squares", "float64", 2),
        ("least-squares-prefixes", "float32", 1),
    ]
    return all_boards[1]


def cells(board) -> dict[str, dict[str, str]]:
    """The rendered table: a line's cells by column, by the line's label."""
    lines = [line.strip("|").split("|") for line in render(board).splitlines()
             if line.startswith("|")]  # fmt: skip
    head, _, *body = [[cell.strip() for cell in line] for line in lines]
    return {line[1]: dict(zip(head, line, strict=True)) for line in body}


def test_rows_are_ordered_by_the_task_s_statistic(board):
    medians = [row.statistics.median for row in board.rows]
    assert medians == sorted(medians)
    assert str(board.rows[0].rank) == "1"


def test_the_floor_is_a_row_without_a_rank(board):
    median = board.records[0].floor["squared_error"].median
    assert (board.floor.label, board.floor.score) == ("floor", median)
    floor = cells(board)["floor"]
    assert (floor["origin"], floor["rank"], floor["median"]) == ("floor", "", f"{median:.2e}")


def test_labels_tell_rows_of_one_model_apart(board):
    labels = {row.label for row in board.rows}
    assert {"zero", "least-squares-qr", "baseconv layers=1", "baseconv layers=2"} <= labels


def test_the_table_shows_every_fact(board):
    table = cells(board)
    trained, solver = table["baseconv layers=1"], table["zero"]
    assert list(trained) == ["rank", "model", "median", "mean", "95% interval", "digits", "seeds",
                             "over seeds", "parameters", "origin", "time"]  # fmt: skip
    assert (trained["origin"], trained["seeds"]) == ("trained", "2")
    assert "…" in trained["over seeds"]
    assert (solver["origin"], solver["seeds"], solver["parameters"]) == ("solver", "", "0")
    for row in board.rows:
        assert table[row.label]["digits"] == f"{-math.log10(row.statistics.median):.1f}"
    assert "least-squares v1" in board.title
    assert "64 prompts" in board.title


def test_rows_without_a_significant_difference_share_a_rank(tmp_path):
    for ridge in (1.0, 1.0000001, 10.0):
        run(model="ridge", **TINY, model_args={"ridge": ridge}, out=tmp_path)
    (board,) = iclbench.leaderboard(tmp_path)
    assert [str(row.rank) for row in board.rows] == ["1=", "1=", "3"]


def test_a_diverged_model_shares_no_rank_with_one_that_is_finite(tmp_path):
    spec = {**TINY, "seeds": 2, "model": "baseconv"}
    run(**spec, out=tmp_path)
    run(**spec, recipe_args={"optimizer": "sgd", "learning_rate": 1e12}, out=tmp_path)
    (board,) = iclbench.leaderboard(tmp_path)
    assert [str(row.rank) for row in board.rows] == ["1", "2"]
    assert [line["origin"] for line in cells(board).values()][2] == "trained, 2 diverged"


def test_other_evaluations_are_other_boards(tmp_path):
    for changes in ({}, {"eval_seed": 1}, {"task_args": {"dim": 4}}):
        run(model="zero", **TINY, **changes, out=tmp_path)
    assert len(iclbench.leaderboard(tmp_path)) == 3


def test_tables_do_not_depend_on_the_order_of_records(leaderboards):
    store = RecordStore(leaderboards / "records")
    records = [read_record(path) for path in store.paths()]
    texts = {
        "\n".join(render(b) for b in boards(order, store)) for order in (records, records[::-1])
    }
    assert len(texts) == 1


def test_a_damaged_record_is_an_error(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    RecordStore(tmp_path).path(record.spec).write_text("{")
    with pytest.raises(RecordError):
        iclbench.leaderboard(tmp_path)
