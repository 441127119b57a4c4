"""The page of states: a row whose record does not hold its state is listed and not drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.matrices import state_views


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


def with_states(board, *states):
    """The board with a trained row for each state."""
    row = next(row for row in board.rows if row.is_trained)
    rows = [
        replace(row, record=row.record.model_copy(update={"state_sizes": state}))
        for state in states
    ]
    return replace(board, rows=tuple(rows))


def test_a_row_of_unknown_state_is_in_the_table_alone(board, about):
    (view,) = state_views([with_states(board, None, (64,), (16,))], about)
    assert [row["bytes"] for row in view["rows"]] == ["64", "256", "unknown"]
    assert view["figure"]["svg"].count("<circle") == 2


def test_states_of_one_size_or_none_need_no_page(board, about):
    assert state_views([with_states(board, None, (64,), (64,))], about) == []
    assert state_views([with_states(board, None, None)], about) == []
