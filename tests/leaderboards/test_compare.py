"""What the page of comparisons offers: the rows of one board beside each other, no others."""

from __future__ import annotations

import json

import pytest

from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.compare import choices


def test_rows_of_two_dtypes_are_no_choices_for_one_another(leaderboards):
    boards = [b for b in leaderboard(leaderboards / "records") if b.task == "least-squares"]
    assert {board.dtype for board in boards} == {"float32", "float64"}
    view = choices(boards, Descriptions(pytest.fail))
    shown = {frozenset(row["id"] for row in one["rows"]) for one in view["evaluations"]}
    assert shown == {frozenset(record.id for record in board.records) for board in boards}
    assert len({one["title"] for one in view["evaluations"]}) == len(boards)
    assert len({one["key"] for one in view["evaluations"]}) == len(boards)
    assert json.loads(str(view["data"])) == view["evaluations"]
