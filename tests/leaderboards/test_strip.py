"""A strip shows where a row stands: its interval, the rows beside it, and the references."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.ranking import Rank
from iclbench.leaderboards.site.run import described, rank_in_words
from iclbench.leaderboards.site.run_parts import held_out_in_short
from iclbench.leaderboards.site.strip import MOST_RINGS, peers, rank_of_how_many, strip


@pytest.fixture(scope="module")
def trained(board):
    return [row for row in board.rows if row.is_trained]


def test_a_strip_has_the_row_its_interval_and_its_peers_as_links(board, trained):
    first, other = trained
    drawn = strip(first, board)
    assert drawn.count('class="point"') == 1
    assert drawn.count('class="whisker"') == 1
    assert re.findall(r'href="([^"]+)"', drawn) == [f"{other.record.id}.html"]
    assert [row.record.id for row in peers(first, board)] == [r.record.id for r in trained]
    for kind in ("attainable", "constructed", "solver", "chance"):
        assert f'class="mark {kind}"' in drawn
    small = strip(first, board, small=True)
    assert "<a " not in small
    assert "<text" not in small
    assert small.count('class="ring"') == 1
    assert strip(replace(first, score=None), board) == ""


def test_a_row_beyond_the_axis_is_an_arrow(board, trained):
    assert "beyond" not in strip(trained[0], board)
    drawn = strip(replace(trained[0], score=-50.0), board)
    assert drawn.count('class="point beyond"') == 1
    assert '<circle class="point' not in drawn


def test_of_many_rows_some_are_drawn(board, trained):
    first, other = trained
    scores = [other.score + 1e-6 * i for i in range(500)]
    many = replace(board, rows=(first, *(replace(other, score=score) for score in scores)))
    drawn = strip(first, many)
    assert drawn.count('class="ring"') == MOST_RINGS
    assert 'aria-label="' in drawn
    assert "among 501 rows" in drawn


def test_solvers_are_beside_solvers(board):
    solver = next(row for row in board.rows if row.origin == "solver")
    assert {row.origin for row in peers(solver, board)} == {"solver"}


def test_a_rank_says_of_how_many(board, trained):
    first = replace(trained[0], rank=Rank(1, 2))
    ranked = replace(board, rows=(first, *board.rows[1:]))
    assert rank_of_how_many(first, ranked) == "1–2 of 2"
    assert rank_in_words(replace(first, rank=None, unranked="one seed"), ranked) == "none: one seed"
    solver = next(row for row in board.rows if row.origin == "solver")
    assert rank_in_words(solver, board).startswith("none")


def test_a_run_s_page_names_its_board_and_what_it_is_compared_with(board, trained):
    view = described(trained[0], board, Descriptions(pytest.fail))
    assert (view["task_title"], view["setting"]) == (
        "Least squares", "D\u00a0=\u00a02, N\u00a0=\u00a04, float32"
    )  # fmt: skip
    assert view["peers"] == 1
    named = {what: name for _, what, name, _ in view["references"]}
    assert named["chance"] == "Zero"
    assert named["floor"] == "attainable"
    assert named["best solver"] == "QR"


def test_held_out_prompts_are_summed_up_in_few_words(board, trained):
    assert held_out_in_short(trained[0]) == "not tested"
    assert held_out_in_short(next(r for r in board.rows if not r.is_trained)) == ""
