"""Draw a figure of lines as SVG, which is what readers see first, print, and see without scripts.

Colors and dashes are classes of the style sheet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

from . import end_labels, point_labels
from .magnitudes import can_show, extent
from .marks import mark
from .plots import Plot
from .ticks import CHARACTER, spaced, ticks

TOP, BOTTOM = 12, 44
#: Lines of at most so many points show each as a mark.
MOST_DOTS = 12
#: The parts of an axis beyond its values, so that none lies on the frame: those of a horizontal
#: axis, and of others and those of single points.
MARGIN_X, MARGIN = 0.02, 0.05

#: Maps a value to a pixel.
ToPixels = Callable[[float], float]


class Size(NamedTuple):
    """The pixels of a drawing, and those to the left and to the right of its axes."""

    width: int
    height: int
    left: int
    #: Also the room for the names at the ends of lines.
    beyond: int

    @property
    def right(self) -> int:
        """Where the horizontal axis ends."""
        return self.width - self.beyond

    @property
    def bottom(self) -> int:
        """The height of the horizontal axis."""
        return self.height - BOTTOM


PLAIN, NAMED = Size(460, 300, 62, 22), Size(760, 300, 62, 210)


def draw(plot: Plot, narrow: bool = False, size: Size | None = None) -> str:
    """The figure as one SVG element; the page shows its title and legend as text.

    A `narrow` drawing has no names at the ends of lines, also where the plot is wide; one of
    another `size` has them. A line with a `page` is a link to it.
    """
    size = size or (NAMED if plot["wide"] and not narrow else PLAIN)
    has_names = size != PLAIN
    values = [v for line in plot["lines"] for v in line["x"]]
    shown = [v for line in plot["lines"] for key in ("y", "low", "high") for v in line.get(key, ())]
    axes = (
        _axis(plot["x"], values, MARGIN if plot["are_points"] else MARGIN_X),
        _axis(plot["y"], shown, MARGIN),
    )
    if plot["are_points"]:
        size = size._replace(beyond=PLAIN.beyond)
    x = to_pixels(axes[0].ends, plot["x"]["log"], size.left, size.right)
    y = to_pixels(axes[1].ends, plot["y"]["log"], size.bottom, TOP)
    names = _names(plot, x, y, size) if has_names else {}
    lines = [
        f'<g data-line="{i}">{"".join(_line(line, plot, x, y))}{names.get(i, "")}</g>'
        for i, line in enumerate(plot["lines"])
    ]
    kinds = " ".join([*["narrow"] * narrow, *["many"] * plot["has_many_bands"]])
    kind = f' class="{kinds}"' if kinds else ""
    # A screen reader looks for links in a group alone.
    role = "group" if any(line.get("page") for line in plot["lines"]) else "img"
    parts = [
        f'<svg{kind} viewBox="0 0 {size.width} {size.height}" role="{role}" '
        f'aria-label="{escape(plot["title"])}">',
        *_axes(plot, axes, x, y, size),
        *(_linked(line, text) for line, text in zip(plot["lines"], lines, strict=True)),
        "</svg>",
    ]
    return "".join(parts)


def _linked(line: Plot, text: str) -> str:
    return f'<a href="{line["page"]}">{text}</a>' if line.get("page") else text


def _names(plot: Plot, x: ToPixels, y: ToPixels, size: Size) -> dict[int, str]:
    """The name of each line, beside its only point or beside the plot."""
    if plot["are_points"]:
        return _names_beside_points(plot, x, y, size)
    ends = {}
    for i, line in enumerate(plot["lines"]):
        points = [(x(a), y(b)) for a, b in zip(line["x"], line["y"], strict=True)
                  if can_show(a, plot["x"]["log"]) and can_show(b, plot["y"]["log"])]  # fmt: skip
        if points:
            ends[i] = points[-1]
    placed = end_labels.label_heights(list(ends.values()), size.right, TOP, size.bottom - 4)
    return {
        i: f'<g class="{style_of(plot["lines"][i])}">'
        f"{''.join(end_labels.label(plot['lines'][i]['label'], end, size.right, at))}</g>"
        for (i, end), at in zip(ends.items(), placed, strict=True)
    }


def _names_beside_points(plot: Plot, x: ToPixels, y: ToPixels, size: Size) -> dict[int, str]:
    """The names of lines of one point each; that of a line of reference is above its end."""
    points = {i: (x(line["x"][-1]), y(line["y"][-1])) for i, line in enumerate(plot["lines"])}
    names = [line["label"] for line in plot["lines"]]
    bars = [
        point_labels.Box(x(line["x"][0]) - 1, y(high), x(line["x"][0]) + 1, y(low))
        for line in plot["lines"]
        for low, high in zip(line.get("low", ()), line.get("high", ()), strict=True)
        if all(can_show(v, plot["y"]["log"]) for v in (low, high))
    ]
    bars += [
        point_labels.Box(
            x(line["x"][0]), y(line["y"][0]) - 1, x(line["x"][-1]), y(line["y"][0]) + 1
        )
        for line in plot["lines"]
        if line.get("reference")
    ]
    room = point_labels.Box(size.left + 2, 0, size.width, size.bottom - 2)
    boxes = point_labels.place(list(points.values()), names, bars, room)
    return {
        i: f'<g class="{style_of(plot["lines"][i])}">'
        f"{''.join(point_labels.label(names[i], points[i], box))}</g>"
        for i, box in zip(points, boxes, strict=True)
    }


class Axis(NamedTuple):
    """The values at the ends of an axis, and its ticks with their texts."""

    ends: tuple[float, float]
    ticks: list[tuple[float, str]]


def _axis(described: Plot, values: list[float | None], margin: float) -> Axis:
    """An axis of these values with a margin on both sides."""
    log = described["log"]
    data = _ends(values, log)
    low, high = (math.log10(v) for v in data) if log else data
    room = margin * (high - low)
    ends = (10 ** (low - room), 10 ** (high + room)) if log else (low - room, high + room)
    # An axis of integers ends at its values, which its ticks divide.
    shown = data if described["integers"] and not log else ends
    return Axis(ends, ticks(*shown, log, described["integers"]))


def _ends(values: list[float | None], log: bool) -> tuple[float, float]:
    low, high = extent(values, log) or ((1.0, 10.0) if log else (0.0, 1.0))
    if log:
        return (low / 2, high * 2) if low == high else (low, high)
    room = max(0.5, abs(low) / 20)
    return (low - room, high + room) if low == high else (low, high)


def to_pixels(ends: tuple[float, float], log: bool, start: float, end: float) -> ToPixels:
    """The map that takes the ends of an axis to these pixels."""
    low, high = (math.log10(v) for v in ends) if log else ends

    def scale(value: float) -> float:
        at = math.log10(value) if log else value
        return start + (at - low) / (high - low) * (end - start)

    return scale


def _axes(
    plot: Plot, axes: tuple[Axis, Axis], x: ToPixels, y: ToPixels, size: Size
) -> Iterator[str]:
    left, right, bottom = size.left, size.right, size.bottom
    for tick, text in axes[1].ticks:
        at = f"{y(tick):.1f}"
        yield f'<line class="grid" x1="{left}" y1="{at}" x2="{right}" y2="{at}"/>'
        yield f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
    for tick, text in spaced(axes[0].ticks, x):
        yield f'<path class="axis" d="M{x(tick):.1f} {bottom}v4"/>'
        # The last text may be wider than the room beside the axis.
        middle = min(x(tick), size.width - CHARACTER * len(text) / 2)
        yield f'<text x="{middle:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
    yield f'<path class="axis" d="M{left} {TOP}V{bottom}H{right}"/>'
    middle = (left + right) / 2
    title = escape(plot["x"]["title"])
    position = f'x="{middle}" y="{size.height - 6}" text-anchor="middle"'
    yield f'<text class="title" {position}>{title}</text>'
    if plot["y"]["title"] and not plot["y"]["above"]:
        yield (
            f'<text class="title y" transform="translate(12 {(TOP + bottom) / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(plot["y"]["title"])}</text>'
        )


def style_of(line: Plot) -> str:
    """The classes of a line: its color and its dashes."""
    color = "reference" if line.get("reference") else f"c{line['color']}"
    return f"{color} {line['dash']}"


def _line(line: Plot, plot: Plot, x: ToPixels, y: ToPixels) -> Iterator[str]:
    """One path, with gaps where a value is missing, its intervals, and dots for few values."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for a, b in zip(line["x"], line["y"], strict=True):
        if can_show(a, plot["x"]["log"]) and can_show(b, plot["y"]["log"]):
            pieces[-1].append((x(a), y(b)))
        elif pieces[-1]:
            pieces.append([])
    style = style_of(line)
    path = "".join(
        "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in piece) for piece in pieces if piece
    )
    if path:
        yield f'<path class="line {style}" d="{path}"><title>{escape(line["name"])}</title></path>'
    if line.get("band"):
        yield from _band(line, plot, x, y)
    elif line.get("low"):
        for a, low, high in zip(line["x"], line["low"], line["high"], strict=True):
            bounds_shown = all(can_show(v, plot["y"]["log"]) for v in (low, high))
            if bounds_shown and can_show(a, plot["x"]["log"]):
                at = f"{x(a):.1f}"
                yield f'<path class="bar {style}" d="M{at} {y(low):.1f}V{y(high):.1f}"/>'
    if len(line["x"]) <= MOST_DOTS and not line.get("reference"):
        for piece in pieces:
            yield from (mark(style, line["dash"], a, b) for a, b in piece)


def _band(line: Plot, plot: Plot, x: ToPixels, y: ToPixels) -> Iterator[str]:
    """The area between a line's bounds, in pieces where one is missing."""
    points = zip(line["x"], line["low"], line["high"], strict=True)

    def is_shown(point: tuple[float, float | None, float | None]) -> bool:
        a, *bounds = point
        return can_show(a, plot["x"]["log"]) and all(can_show(v, plot["y"]["log"]) for v in bounds)

    for shown, piece in itertools.groupby(points, is_shown):
        if shown:
            known = list(piece)
            there = [f"{x(a):.1f} {y(high):.1f}" for a, _, high in known]
            back = [f"{x(a):.1f} {y(low):.1f}" for a, low, _ in reversed(known)]
            yield f'<path class="band {style_of(line)}" d="M{"L".join([*there, *back])}Z"/>'


def key(line: Plot) -> str:
    """What stands for a line in a legend: its dashes, and the mark of its points."""
    style = style_of(line)
    is_reference = line.get("reference")
    drawn = "" if len(line["x"]) == 1 and not is_reference else (
        f'<path class="line {style}" d="M1 6H31"/>'
    )  # fmt: skip
    if len(line["x"]) <= MOST_DOTS and not is_reference:
        drawn += mark(style, line["dash"], 16, 6)
    return f'<svg class="key" width="32" height="12" aria-hidden="true">{drawn}</svg>'
