"""What the page of comparisons offers: the rows of one board beside each other, no others."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site import settings
from iclbench.leaderboards.site.compare import _usual, choices


def test_rows_of_two_dtypes_are_no_choices_for_one_another(leaderboards):
    boards = [b for b in leaderboard(leaderboards / "records") if b.task == "least-squares"]
    assert {board.dtype for board in boards} == {"float32", "float64"}
    view = choices(boards, Descriptions(pytest.fail))
    shown = {frozenset(row["id"] for row in one["rows"]) for one in view["evaluations"]}
    assert shown == {frozenset(record.id for record in board.records) for board in boards}
    assert len({one["title"] for one in view["evaluations"]}) == len(boards)
    assert len({one["key"] for one in view["evaluations"]}) == len(boards)
    assert json.loads(str(view["data"])) == view["evaluations"]


def test_the_two_best_models_of_the_usual_track_are_compared_first(board):
    usual = _usual(board)
    trained = [row.record.id for row in board.rows if row.is_trained]
    # Both trained rows are of one model: the board's next row stands beside its best.
    assert usual[0] == settings.best_by_model(r for r in board.rows if r.is_trained)[0].record.id
    assert usual[1] in trained
    assert len(set(usual)) == 2


def test_a_choice_tells_its_track_for_the_warning(board):
    view = choices([board], Descriptions(pytest.fail))
    (one,) = view["evaluations"]
    told = {row["trained"] for row in one["rows"]}
    assert told == {"open budget, 2 seeds", ""}
    assert {row["track"] for row in one["rows"]} == {"open", ""}


def test_a_choice_s_name_has_the_track_before_dtype_and_origin(board):
    first = board.rows[0]
    tracked = replace(first, record=first.record.model_copy(update={"track": "10m"}))
    view = choices([replace(board, rows=(tracked,))], Descriptions(pytest.fail))
    ((name,),) = ([row["name"] for row in one["rows"]] for one in view["evaluations"])
    assert name.endswith(f" · {tracked.track} · float32 · trained")
