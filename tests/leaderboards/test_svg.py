"""Drawings of lines: points where the axes say, round ticks, intervals with their dots."""

from __future__ import annotations

import re

import pytest

from iclbench.leaderboards.site import svg
from iclbench.leaderboards.site.home import COMPUTE
from iclbench.leaderboards.site.plots import MOST_LINES, plot
from iclbench.leaderboards.site.ticks import CHARACTER, spaced, ticks


def test_a_drawing_has_its_points_where_the_axes_say():
    lines = [{"name": "a <b>", "x": [1, 10, 100], "y": [1e-2, None, 1.0]}]
    drawn = svg.draw(plot("t", "x", "y", lines, log=True, log_x=True))
    dots = [(float(a), float(b)) for a, b in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)]
    left, right = svg.PLAIN.left, svg.PLAIN.right
    # A margin of a part of each axis keeps them off the frame.
    x_room = (right - left) * svg.MARGIN_X / (1 + 2 * svg.MARGIN_X)
    y_room = (svg.PLAIN.bottom - svg.TOP) * svg.MARGIN / (1 + 2 * svg.MARGIN)
    expected = [left + x_room, svg.PLAIN.bottom - y_room, right - x_room, svg.TOP + y_room]
    assert [v for dot in dots for v in dot] == pytest.approx(expected, abs=0.06)
    assert "a &lt;b&gt;" in drawn
    # Half way up a logarithmic axis from 0.01 to 1.
    middle = (svg.PLAIN.bottom + svg.TOP) / 2
    assert f'y2="{middle:.1f}"' in drawn


@pytest.mark.parametrize(
    ("low", "high", "log", "texts"),
    [
        (0.0, 1.0, False, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (1e-14, 1.0, True, ["10⁻¹⁴", "10⁻¹¹", "10⁻⁸", "10⁻⁵", "10⁻²"]),
        (2.0, 9.0, True, ["2", "4", "6", "8"]),
        (-1.0, 1.0, False, ["−1", "−0.5", "0", "0.5", "1"]),
        (1.1e9, 6.2e9, True, ["2·10⁹", "3·10⁹", "4·10⁹", "5·10⁹", "6·10⁹"]),
        (1.5e3, 1.7e4, True, ["2,000", "5,000", "10,000"]),
        (900.0, 4e4, True, ["1,000", "10,000"]),
        (0.0, 2e9, False, ["0", "5·10⁸", "10⁹", "1.5·10⁹", "2·10⁹"]),
        (1.4, 80.0, True, ["2", "5", "10", "20", "50"]),
    ],
)
def test_ticks_are_round_and_few(low, high, log, texts):
    assert [text for _, text in ticks(low, high, log)] == texts


def test_the_text_of_the_last_tick_is_inside_the_drawing():
    lines = [{"name": "a", "x": [1e5, 4e5], "y": [1.0, 2.0]}]
    drawn = svg.draw(plot("t", "x", "y", lines, log=False, log_x=True))
    middle = float(re.search(r'<text x="([\d.]+)"[^>]*>400,000<', drawn)[1])
    assert middle + CHARACTER * len("400,000") / 2 <= svg.PLAIN.width


@pytest.mark.parametrize(
    ("high", "texts"),
    [
        (16, ["0", "4", "8", "12", "16"]),
        (8, ["0", "2", "4", "6", "8"]),
        (3, ["0", "1", "2", "3"]),
        (7, ["0", "2", "4", "6"]),
    ],
)
def test_ticks_of_integers_are_integers(high, texts):
    assert [text for _, text in ticks(0, high, False, integers=True)] == texts


def test_axes_of_integers_are_known_and_lines_can_be_told_apart():
    lines = [{"name": str(i), "x": [0, 2], "y": [0.5, 1]} for i in range(MOST_LINES)]
    drawn = plot("t", "x", "y", [*lines, lines[0] | {"reference": True}], log=False)
    assert drawn["x"]["integers"]
    assert not drawn["y"]["integers"]
    styles = [svg.style_of(line) for line in drawn["lines"]]
    assert len(set(styles)) == MOST_LINES + 1


@pytest.mark.parametrize(
    ("width", "kept"),
    [(400, ["2·10⁹", "3·10⁹", "4·10⁹", "5·10⁹", "6·10⁹"]), (180, ["2·10⁹", "4·10⁹", "6·10⁹"]),
     (90, ["2·10⁹", "6·10⁹"])],
)  # fmt: skip
def test_ticks_that_would_touch_are_dropped(width, kept):
    scale = svg.to_pixels((2e9, 6e9), False, 0.0, width)
    labels = [(i * 1e9, f"{i}·10⁹") for i in range(2, 7)]
    shown = spaced(labels, scale)
    assert [text for _, text in shown] == kept
    # The map may run from right to left.
    assert spaced(labels, lambda v: -scale(v)) == shown


def test_lines_with_a_page_are_links_and_have_their_names_at_their_ends():
    lines = [
        {"name": "a <b>", "page": "runs/1.html", "x": [0.0, 1e6, 1e8], "y": [0.1, None, 0.5]},
        {"name": "other", "page": "runs/2.html", "x": [1e5, 1e9], "y": [0.1, 0.4]},
    ]
    drawn = svg.draw(plot("t", "x", "", lines, log=False, log_x=True), size=COMPUTE)
    assert 'role="group"' in drawn
    assert drawn.count("<a href=") == 2
    assert drawn.count('class="end"') == 2
    assert "a &lt;b&gt;" in drawn
    assert "10⁵" in drawn
    assert "10⁹" in drawn
