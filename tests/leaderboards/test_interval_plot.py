"""Small plots of intervals: a dot in its bar, an arrow beyond the axis, lines of reference."""

from __future__ import annotations

import re

from iclbench.leaderboards.site.dotplot import Axis, Reference
from iclbench.leaderboards.site.interval_plot import interval_plot


def test_an_interval_without_width_still_holds_its_dot():
    drawn = interval_plot(1.0000000000000003, 1.0000000000000003, 1.0, Axis(0.0, 2.0, log=False))
    low, high, dot = (
        float(re.search(rf' {name}="([\d.]+)"', drawn)[1]) for name in ("x1", "x2", "cx")
    )
    assert low <= dot <= high


def test_an_interval_is_cut_at_the_ends_and_a_score_beyond_is_an_arrow():
    # The left end is the worst value, of an error as well.
    drawn = interval_plot(0.25, 66.0, 0.5, Axis(1.5, 0.0, log=False))
    low, high, dot = (
        float(re.search(rf' {name}="([\d.]+)"', drawn)[1]) for name in ("x1", "x2", "cx")
    )
    assert low == 4
    assert low < dot < high
    # Beyond the worst end, on the left, and beyond the best one, on the right.
    for at, points_right in ((4.0, False), (-1.0, True)):
        beyond = interval_plot(0.25, 66.0, at, Axis(1.5, 0.0, log=False))
        assert "<circle" not in beyond
        tip, base = map(float, re.search(r'd="M([\d.]+) 7L([\d.]+) ', beyond).groups())
        assert (tip > base) == points_right
        assert 0 <= tip <= 90


def test_chance_and_floor_are_lines_and_solvers_are_not():
    marks = [Reference("chance", "zero", 1.5), Reference("solver", "qr", 0.2),
             Reference("attainable", "attainable", 0.1)]  # fmt: skip
    drawn = interval_plot(0.4, 0.6, 0.5, Axis(1.6, 0.0, log=False), marks)
    lines = dict(re.findall(r'class="mark (\w+)" d="M([\d.]+) 0V14"', drawn))
    assert set(lines) == {"chance", "attainable"}
    # Chance has a margin: a row just beyond it is a dot and no arrow.
    assert 4 < float(lines["chance"]) < float(lines["attainable"]) < 86
    assert "<circle" in interval_plot(1.5, 1.52, 1.51, Axis(1.6, 0.0, log=False), marks)
