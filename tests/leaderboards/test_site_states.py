"""The page of states: which rows are listed, drawn and compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.matrices import _from_chance, state_matrix, state_views


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


def test_every_model_is_drawn_however_many_and_however_long_their_labels(board, about):
    many = with_states(board, *((4 * (i + 1),) for i in range(18)))
    rows = [replace(row, label=f"{row.record.spec.model} {'argument=value ' * i}")
            for i, row in enumerate(many.rows)]  # fmt: skip
    (view,) = state_views([replace(many, rows=tuple(rows))], about)
    drawn = view["figure"]["svg"]
    assert drawn.count('class="dot ') == 18
    assert "off" not in drawn


def test_states_of_one_size_or_none_need_no_page(board, about):
    assert state_views([with_states(board, None, (64,), (64,))], about) == []
    assert state_views([with_states(board, None, None)], about) == []


def with_prompts(board, prompts):
    """The board of as many prompts, and all else equal."""
    record = board.rows[0].record
    main = record.main.model_copy(update={"prompts": prompts})
    first = record.model_copy(update={"evaluations": {**record.evaluations, "main": main}})
    return replace(board, rows=(replace(board.rows[0], record=first), *board.rows[1:]))


def test_evaluation_sets_of_equal_arguments_are_named_by_their_prompts(board, about):
    boards = [with_prompts(with_states(board, (64,), (16,)), n) for n in (512, 2048)]
    matrix = state_matrix(boards, about)
    assert len(set(matrix["titles"])) == 2
    assert "512 prompts" in matrix["titles"][0]
    assert "2,048 prompts" in matrix["titles"][1]
    assert [line["bytes"] for line in matrix["lines"]] == ["64", "256"]


def test_shades_begin_at_chance():
    assert _from_chance([0.5, 4.0], [1.6, 1.5], lower=True) == (0.5, 1.6)
    assert _from_chance([2.0, 4.0], [1.6], lower=True) == (2.0, 2.0)  # all are worse
    assert _from_chance([-1.0, 3.0, None], [0.1], lower=False) == (0.1, 3.0)
    assert _from_chance([1.0, 3.0], [None], lower=False) == (1.0, 3.0)


def test_constructed_rows_are_not_among_the_best_by_size_of_state(board, about):
    trained = with_states(board, (64,))
    row = trained.rows[0]
    spec = row.record.spec.model_copy(update={"origin": "constructed"})
    built = row.record.model_copy(update={"spec": spec, "state_sizes": (8,)})
    both = replace(trained, rows=(*trained.rows, replace(row, record=built)))
    matrix = state_matrix([with_prompts(both, 512), with_prompts(both, 2048)], about)
    assert [line["bytes"] for line in matrix["lines"]] == ["256"]
