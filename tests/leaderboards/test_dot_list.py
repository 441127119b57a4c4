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


def test_no_dot_covers_another_and_references_are_lines():
    values = [0.5, 0.5, 0.5, 0.9, 0.51]
    dots = [dot_list.Dot(v, str(i), hue=10 * i, name=f"model {i}") for i, v in enumerate(values)]
    floor = dot_list.Dot(0.5, "floor", name="floor", reference=True)
    view = dot_list.dot_plot(
        "t", "accuracy", [("one", [*dots, floor]), ("two", dots[:1])], log=False
    )
    first, second = view["lines"]
    drawn = [(dot["left"], dot["up"]) for dot in first["dots"] if dot["style"] != "reference"]
    assert len(drawn) == len(set(drawn)) == len(values)
    near = [up for left, up in drawn if float(left) < 60]
    assert len(set(near)) == len(near) == 4
    # A dot alone is in the middle, and a row is as high as its dots.
    assert dict(drawn)[first["dots"][4]["left"]] == 0
    assert first["height"] >= max(near) - min(near) + dot_list.DOT
    assert second["height"] < first["height"]
    # Shapes differ beside colors, and the line of reference is drawn first, with its own class.
    assert len({dot["style"].split()[1] for dot in first["dots"][1:5]}) == 4
    assert first["dots"][0]["style"] == "reference"
    assert view["legend"][-1] == {"name": "floor", "style": "reference"}
