"""Draw a figure of lines as SVG, which is what readers see first, print, and see without scripts.

Colors and dashes are classes of the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape
from typing import NamedTuple

from . import end_labels, point_labels
from .magnitudes import can_show, extent
from .plots import Plot
from .ticks import spaced, ticks

TOP, BOTTOM = 12, 44
#: Lines of at most so many points show each as a dot.
MOST_DOTS = 12

#: Of a line that a reader has to ask for.
_OFF = ' class="off"'

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
    x_ends = _ends([v for line in plot["lines"] for v in line["x"]], plot["x"]["log"])
    shown = [v for line in plot["lines"] for key in ("y", "low", "high") for v in line.get(key, ())]
    y_ends = _ends(shown, plot["y"]["log"])
    if plot["are_points"]:
        # A dot on an axis would be hard to see.
        x_ends, y_ends = (
            _widened(e, plot[axis]["log"]) for e, axis in ((x_ends, "x"), (y_ends, "y"))
        )
        size = size._replace(beyond=PLAIN.beyond)
    x = to_pixels(x_ends, plot["x"]["log"], size.left, size.right)
    y = to_pixels(y_ends, plot["y"]["log"], size.bottom, TOP)
    names = _names(plot, x, y, size) if has_names else {}
    lines = [
        f'<g data-line="{i}"{"" if line["shown"] else _OFF}>'
        f"{''.join(_line(line, plot, x, y))}{names.get(i, '')}</g>"
        for i, line in enumerate(plot["lines"])
    ]
    kind = ' class="narrow"' if narrow else ""
    # A screen reader looks for links in a group alone.
    role = "group" if any(line.get("page") for line in plot["lines"]) else "img"
    parts = [
        f'<svg{kind} viewBox="0 0 {size.width} {size.height}" role="{role}" '
        f'aria-label="{escape(plot["title"])}">',
        *_axes(plot, (x_ends, y_ends), x, y, size),
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
        f"{''.join(end_labels.label(plot['lines'][i]['name'], end, size.right, at))}</g>"
        for (i, end), at in zip(ends.items(), placed, strict=True)
    }


def _names_beside_points(plot: Plot, x: ToPixels, y: ToPixels, size: Size) -> dict[int, str]:
    """The names of lines of one point each; that of a line of reference is above its end."""
    points = {i: (x(line["x"][-1]), y(line["y"][-1])) for i, line in enumerate(plot["lines"])}
    names = [line["name"] for line in plot["lines"]]
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


def _ends(values: list[float | None], log: bool) -> tuple[float, float]:
    low, high = extent(values, log) or ((1.0, 10.0) if log else (0.0, 1.0))
    if log:
        return (low / 2, high * 2) if low == high else (low, high)
    room = max(0.5, abs(low) / 20)
    return (low - room, high + room) if low == high else (low, high)


def _widened(ends: tuple[float, float], log: bool) -> tuple[float, float]:
    """The ends with a margin of a twentieth on each side."""
    low, high = (math.log10(v) for v in ends) if log else ends
    margin = (high - low) / 20
    return (10 ** (low - margin), 10 ** (high + margin)) if log else (low - margin, high + margin)


def to_pixels(ends: tuple[float, float], log: bool, start: float, end: float) -> ToPixels:
    """The map that takes the ends of an axis to these pixels."""
    low, high = (math.log10(v) for v in ends) if log else ends

    def scale(value: float) -> float:
        at = math.log10(value) if log else value
        return start + (at - low) / (high - low) * (end - start)

    return scale


def _axes(
    plot: Plot,
    ends: tuple[tuple[float, float], tuple[float, float]],
    x: ToPixels,
    y: ToPixels,
    size: Size,
) -> Iterator[str]:
    (x_ends, y_ends), left, right, bottom = ends, size.left, size.right, size.bottom
    for tick, text in ticks(*y_ends, plot["y"]["log"], plot["y"]["integers"]):
        at = f"{y(tick):.1f}"
        yield f'<line class="grid" x1="{left}" y1="{at}" x2="{right}" y2="{at}"/>'
        yield f'<text x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
    labels = ticks(*x_ends, plot["x"]["log"], plot["x"]["integers"])
    for tick, text in spaced(labels, x):
        yield f'<path class="axis" d="M{x(tick):.1f} {bottom}v4"/>'
        yield f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
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
    if line.get("low"):
        for a, low, high in zip(line["x"], line["low"], line["high"], strict=True):
            bounds_shown = all(can_show(v, plot["y"]["log"]) for v in (low, high))
            if bounds_shown and can_show(a, plot["x"]["log"]):
                at = f"{x(a):.1f}"
                yield f'<path class="bar {style}" d="M{at} {y(low):.1f}V{y(high):.1f}"/>'
    if len(line["x"]) <= MOST_DOTS and not line.get("reference"):
        for a, b in (point for piece in pieces for point in piece):
            yield f'<circle class="dot {style}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>'
