"""Dot plots: dots lie in their intervals, and names at the ends of curves do not overlap."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclbench.leaderboards.board import Board, leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.dotplot import (
    LABELS,
    LARGEST,
    RADIUS,
    SMALLEST,
    VALUES,
    WIDTH,
    board_dots,
    references,
    sizes_of,
)
from iclbench.leaderboards.site.end_labels import label_heights, spread


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


def numbers(pattern: str, drawn: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, match.groups())) for match in re.finditer(pattern, drawn)]


def test_a_dot_lies_in_its_interval_at_its_score(board, about):
    drawn = board_dots(board, [""], about, 7)
    trained = [row for row in board.rows if row.is_trained]
    best = max(trained, key=lambda row: row.goodness)
    bars = numbers(r'class="whisker" x1="([\d.]+)" x2="([\d.]+)"', drawn)
    dots = numbers(r'class="point" cx="([\d.]+)"', drawn)
    # Both trained rows are of one model, which is shown by the better one.
    assert len(bars) == len(dots) == 1
    assert bars[0][0] <= dots[0][0] <= bars[0][1]
    floor = board.floor.score
    right = WIDTH - VALUES
    end = -(-floor // 1)
    expected = LABELS + min(max(best.score, 0.0), end) / end * (right - LABELS)
    assert dots[0][0] == pytest.approx(expected, abs=0.06)


def test_the_tracks_of_a_model_are_dots_on_one_line_of_growing_size(board, about):
    short, long = (row for row in board.rows if row.is_trained)
    short, long = (replace(row, record=row.record.model_copy(update={"track": track}))
                   for row, track in ((short, "1m"), (long, "10m")))  # fmt: skip
    both = Board((long, short), board.floor)
    drawn = board_dots(both, ["1m", "10m"], about, 7)
    # The larger dot is drawn first, so that the smaller one is seen on it.
    dots = re.findall(r'href="runs/([\w-]+)\.html"><title>.*?cy="([\d.]+)" r="([\d.]+)"', drawn)
    (a, first, large), (b, second, small) = dots
    assert (a, b) == (long.record.id, short.record.id)
    assert first == second
    assert (float(small), float(large)) == (SMALLEST, LARGEST)
    assert drawn.count('class="between"') == 1
    assert f"{short.score:.2f} → {long.score:.2f}" in drawn
    assert sizes_of({"10m"}) == {"10m": RADIUS}
    assert list(sizes_of(["10m", "", "2h"])) == ["", "10m", "2h"]


def test_ranks_stand_at_the_right_where_they_are_asked_for(board, about):
    drawn = board_dots(board, [""], about, 7, ranks=True)
    assert '">rank</text>' in drawn
    assert f'text-anchor="end">{next(r.rank for r in board.rows if r.rank)}</text>' in drawn
    assert "rank</text>" not in board_dots(board, [""], about, 7)


def test_lines_of_reference_are_the_best_of_each_origin(board):
    found = {mark.kind: mark for mark in references(board)}
    assert found["attainable"].value == board.floor.score
    solvers = [r.score for r in board.rows if r.origin == "solver" and not r.record.chance]
    assert found["solver"].value == max(solvers)
    assert found["chance"].name == "zero"
    assert found["constructed"].name.startswith("baseconv")


def test_lower_means_are_farther_right(leaderboards, about):
    boards = leaderboard(leaderboards / "records")
    board = next(b for b in boards if b.task == "categorical")
    assert board_dots(board, [""], about, 7) is None  # it has no trained row
    marks = {mark.kind: mark.value for mark in references(board)}
    assert marks["attainable"] < marks["chance"]


@given(st.lists(st.floats(0, 200), min_size=1, max_size=10))
def test_names_keep_their_order_and_distance(wanted):
    placed = spread(wanted, 13.0, 0.0, 200.0)
    in_order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    positions = [placed[i] for i in in_order]
    assert all(b - a >= 13.0 - 1e-9 for a, b in itertools.pairwise(positions))
    assert positions[0] >= -1e-9
    assert positions[-1] <= 200.0 + 1e-9


@given(st.lists(st.tuples(st.floats(0, 90), st.floats(0, 200)), min_size=2, max_size=12))
def test_thin_lines_to_names_do_not_cross(ends):
    heights = label_heights(ends, 100.0, 0.0, 200.0)
    assert sorted(heights) == pytest.approx(sorted(spread([y for _, y in ends], 13.0, 0.0, 200.0)))

    def height(i, x):
        left = ends[i][0] + 2
        return ends[i][1] + (x - left) / (108 - left) * (heights[i] - ends[i][1])

    for i, j in itertools.combinations(range(len(ends)), 2):
        first = max(ends[i][0], ends[j][0]) + 2
        before, after = (height(i, x) - height(j, x) for x in (first, 108))
        assert before * after >= -1e-6
