"""Dot plots in HTML: places on the axis, and ticks that have room."""

from __future__ import annotations

import pytest

from iclbench.leaderboards.site import dot_list


def test_a_dot_lies_where_the_axis_says():
    dots = [dot_list.Dot(1e-6, "a"), dot_list.Dot(float("nan"), "b")]
    view = dot_list.dot_plot("t", "error", [("one", dots), ("two", [dot_list.Dot(1e-2, "c")])],
                             log=True)  # fmt: skip
    (left,), (right,) = ([float(d["left"]) for d in line["dots"]] for line in view["lines"])
    # A margin of 6% of four decades on both sides.
    assert left == pytest.approx(100 * 0.06 / 1.12, abs=0.01)
    assert right == pytest.approx(100 - left, abs=0.01)
    assert len(view["ticks"]) >= 2


@pytest.mark.parametrize(
    ("low", "high"), [(1e-14, 1e-13), (1e-14, 1e-5), (100, 1000), (3, 3), (1e-200, 1e200)]
)
def test_ticks_of_a_dot_plot_have_room_on_a_phone(low, high):
    dots = [dot_list.Dot(low, "a"), dot_list.Dot(high, "b")]
    ticks = dot_list.dot_plot("t", "error", [("one", dots)], log=True)["ticks"]
    assert len(ticks) >= 2
    assert dot_list._fit([(float(at), text) for at, text in ticks])
