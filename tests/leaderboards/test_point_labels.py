"""Names beside points: near them, apart from each other, inside the drawing."""

from __future__ import annotations

import itertools
import math
import re

from hypothesis import given
from hypothesis import strategies as st

from iclbench.leaderboards.site.figure import figure
from iclbench.leaderboards.site.plots import COLORS, plot
from iclbench.leaderboards.site.point_labels import BESIDE, LEAD, Box, label, place

ROOM = Box(0.0, 0.0, 700.0, 300.0)


def test_a_lonely_point_has_its_name_at_its_right():
    (box,) = place([(100.0, 100.0)], ["GRU"], [], ROOM)
    assert 100 < box.left < 100 + LEAD
    assert box.top < 100 < box.bottom
    assert "path" not in "".join(label("GRU", (100.0, 100.0), box))


def test_a_name_at_the_right_edge_is_at_the_left_of_its_point():
    (box,) = place([(690.0, 100.0)], ["Transformer"], [], ROOM)
    assert box.right < 690
    drawn = "".join(label("Transformer", (690.0, 100.0), box))
    assert f'x="{box.right - BESIDE:.1f}"' in drawn
    assert 'text-anchor="end"' in drawn


def test_names_of_crowded_points_cover_neither_points_nor_names_nor_bars():
    points = [(300.0 + 9 * (i % 4), 150.0 + 9 * (i // 4)) for i in range(12)]
    bar = Box(340.0, 100.0, 342.0, 200.0)
    boxes = place(points, [f"model {i}" for i in range(12)], [bar], ROOM)
    dots = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    assert all(a.overlap(b) == 0 for a, b in itertools.combinations([*boxes, bar], 2))
    assert all(box.overlap(dot) == 0 for box in boxes for dot in dots)
    far = [math.dist(p, (b.left, (b.top + b.bottom) / 2)) > 60
           for p, b in zip(points, boxes, strict=True)]  # fmt: skip
    drawn = ["".join(label("m", p, b)) for p, b in zip(points, boxes, strict=True)]
    assert any(far)
    assert any('class="lead"' in text for text in drawn)


@given(st.lists(st.tuples(st.floats(0, 700), st.floats(0, 300)), min_size=1, max_size=15))
def test_every_name_is_inside_the_drawing(points):
    for box in place(points, ["Gated DeltaNet"] * len(points), [], ROOM):
        assert box.left >= -1e-6
        assert box.right <= 700 + 1e-6
        assert box.top >= -1e-6
        assert box.bottom <= 300 + 1e-6


def test_a_plot_of_many_points_names_each_beside_it():
    lines = [{"name": f"model {i}", "x": [10 * i], "y": [1.0]} for i in range(COLORS + 3)]
    floor = {"name": "floor", "x": [0, 100], "y": [2.0, 2.0], "reference": True}
    view = figure(plot("t", "x", "y", [*lines, floor], log=False))
    # Their ends are at one height, where names beside the plot would have no room.
    assert view["wide"]
    dots = [float(x) for x in re.findall(r'class="dot [^>]* (?:cx="|d="M)([\d.]+)', view["svg"])]
    names = re.findall(r'<text class="end" x="([\d.]+)" y="[\d.]+"[^>]*>(model \d+)<', view["svg"])
    assert [name for _, name in names] == [line["name"] for line in lines]
    assert all(abs(float(x) - dot) < 80 for (x, _), dot in zip(names, dots, strict=True))
