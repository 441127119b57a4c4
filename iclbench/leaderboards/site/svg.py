"""Draw a figure of lines as SVG, which is what readers see first, print, and see without scripts.

Colors and dashes are classes of the style sheet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

from . import end_labels, point_labels
from .plots import Plot, can_show, extent

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 22, 12, 44
#: The pixels of a plot whose lines have their names at their ends, and of the room for these.
WIDE, NAMES = 760, 210
#: The pixels of a character of a tick's text on a phone, where text is larger, and between texts.
CHARACTER, GAP = 7.5, 8
#: Lines of at most so many points show each as a dot.
MOST_DOTS = 12

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: Of a line that a reader has to ask for.
_OFF = ' class="off"'

#: Maps a value to a pixel.
Scale = Callable[[float], float]


def draw(plot: Plot, narrow: bool = False) -> str:
    """The figure as one SVG element; the page shows its title and legend as text.

    A `narrow` drawing has no names at the ends of lines, also where the plot is wide.
    """
    has_names = plot["wide"] and not narrow
    x_ends = _ends([v for line in plot["lines"] for v in line["x"]], plot["x"]["log"])
    shown = [v for line in plot["lines"] for key in ("y", "low", "high") for v in line.get(key, ())]
    y_ends = _ends(shown, plot["y"]["log"])
    if plot["are_points"]:
        # A dot on an axis would be hard to see.
        x_ends, y_ends = (
            _widened(e, plot[axis]["log"]) for e, axis in ((x_ends, "x"), (y_ends, "y"))
        )
    width, right = (WIDE, WIDE - NAMES) if has_names else (WIDTH, WIDTH - RIGHT)
    if has_names and plot["are_points"]:
        right = WIDE - RIGHT
    x = scale_of(x_ends, plot["x"]["log"], LEFT, right)
    y = scale_of(y_ends, plot["y"]["log"], HEIGHT - BOTTOM, TOP)
    names = _names(plot, x, y, right) if has_names else {}
    lines = [
        f'<g data-line="{i}"{"" if line["shown"] else _OFF}>'
        f"{''.join(_line(line, plot, x, y))}{names.get(i, '')}</g>"
        for i, line in enumerate(plot["lines"])
    ]
    kind = ' class="narrow"' if narrow else ""
    label = escape(plot["title"])
    parts = [
        f'<svg{kind} viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{label}">',
        *_axes(plot, (x_ends, y_ends), x, y, right),
        *lines,
        "</svg>",
    ]
    return "".join(parts)


def _names(plot: Plot, x: Scale, y: Scale, right: float) -> dict[int, str]:
    """The name of each line, beside its only point or beside the plot."""
    if plot["are_points"]:
        return _names_beside_points(plot, x, y, right)
    ends = {}
    for i, line in enumerate(plot["lines"]):
        points = [(x(a), y(b)) for a, b in zip(line["x"], line["y"], strict=True)
                  if can_show(a, plot["x"]["log"]) and can_show(b, plot["y"]["log"])]  # fmt: skip
        if points:
            ends[i] = points[-1]
    placed = end_labels.label_heights(list(ends.values()), right, TOP, HEIGHT - BOTTOM - 4)
    return {
        i: f'<g class="{style_of(plot["lines"][i])}">'
        f"{''.join(end_labels.label(plot['lines'][i]['name'], end, right, at))}</g>"
        for (i, end), at in zip(ends.items(), placed, strict=True)
    }


def _names_beside_points(plot: Plot, x: Scale, y: Scale, right: float) -> dict[int, str]:
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
    room = point_labels.Box(LEFT + 2, 0, right + RIGHT, HEIGHT - BOTTOM - 2)
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


def scale_of(ends: tuple[float, float], log: bool, start: float, end: float) -> Scale:
    """The map that takes the ends of an axis to these pixels."""
    low, high = (math.log10(v) for v in ends) if log else ends

    def scale(value: float) -> float:
        at = math.log10(value) if log else value
        return start + (at - low) / (high - low) * (end - start)

    return scale


def _axes(
    plot: Plot,
    ends: tuple[tuple[float, float], tuple[float, float]],
    x: Scale,
    y: Scale,
    right: int,
) -> Iterator[str]:
    (x_ends, y_ends), bottom = ends, HEIGHT - BOTTOM
    for tick, text in ticks(*y_ends, plot["y"]["log"], plot["y"]["integers"]):
        at = f"{y(tick):.1f}"
        yield f'<line class="grid" x1="{LEFT}" y1="{at}" x2="{right}" y2="{at}"/>'
        yield f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
    labels = ticks(*x_ends, plot["x"]["log"], plot["x"]["integers"])
    for tick, text in spaced(labels, x):
        yield f'<path class="axis" d="M{x(tick):.1f} {bottom}v4"/>'
        yield f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    middle = (LEFT + right) / 2
    title = escape(plot["x"]["title"])
    yield f'<text class="title" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{title}</text>'
    if not plot["y"]["above"]:
        yield (
            f'<text class="title y" transform="translate(12 {(TOP + bottom) / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(plot["y"]["title"])}</text>'
        )


def ticks(low: float, high: float, log: bool, integers: bool = False) -> list[tuple[float, str]]:
    """About six round values at most between the ends, with their text.

    Without a logarithm, `integers` leaves out all others.
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        exponents = list(range(first, last + 1, step))
        if len(exponents) > 1:
            return [(10.0**e, power(e)) for e in exponents]
        if low > 0 and high / low > 10:
            round_values = (m * 10.0**e for e in (first - 1, last) for m in (1, 2, 5))
            return [(v, _short(v)) for v in round_values if low <= v <= high]
    size = 10 ** math.floor(math.log10((high - low) / 5))
    step_size = next(m * size for m in (1, 2, 5, 10) if (high - low) / (m * size) <= 6)
    if integers:
        # A step that divides the range ends at a tick.
        steps = [s for s in (1, 2, 4, 5) if (high - low) / s <= 6 and (high - low) % s == 0]
        step_size = steps[0] if steps else max(1, round(step_size))
    start = math.ceil(low / step_size - 1e-9)
    count = math.floor(high / step_size + 1e-9) - start + 1
    values = [(start + i) * step_size for i in range(count)]
    return [(v, _short(v)) for v in values if not log or v > 0]


def spaced(labels: Sequence[tuple[float, str]], scale: Scale) -> list[tuple[float, str]]:
    """The ticks of a horizontal axis whose texts do not touch: all, or every second, and so on."""
    shown = list(labels)
    while len(shown) > 1 and any(_touch(a, b, scale) for a, b in itertools.pairwise(shown)):
        shown = shown[::2]
    return shown


def _touch(one: tuple[float, str], other: tuple[float, str], scale: Scale) -> bool:
    """Whether the texts of two ticks would be less than the gap apart."""
    room = abs(scale(other[0]) - scale(one[0]))
    return room < CHARACTER * (len(one[1]) + len(other[1])) / 2 + GAP


def _short(value: float) -> str:
    """A round value as an axis writes it: −0.5, 2,000, 2·10⁹."""
    mantissa, _, exponent = f"{value:,.6g}".replace("-", "−").partition("e")
    if not exponent:
        return mantissa
    raised = power(int(exponent.replace("−", "-")))
    return raised if mantissa == "1" else f"{mantissa}·{raised}"


def power(exponent: int) -> str:
    """A power of ten as an axis writes it: 0.01, 1,000, 10⁻⁸."""
    if abs(exponent) <= 3:
        return f"{10.0**exponent:,g}"
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def style_of(line: Plot) -> str:
    """The classes of a line: its color and its dashes."""
    color = "reference" if line.get("reference") else f"c{line['color']}"
    return f"{color} {line['dash']}"


def _line(line: Plot, plot: Plot, x: Scale, y: Scale) -> Iterator[str]:
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


def interval(
    low: float | None,
    high: float | None,
    at: float | None,
    ends: tuple[float, float],
    log: bool = False,
) -> str:
    """A row's interval plot: a bar from low to high, and a dot at the score; empty without one.

    `ends` are the values at the left and at the right; what lies beyond is cut, and a score there
    is an arrow.
    """
    if at is None or not math.isfinite(at):
        return ""
    width = 90
    scale = scale_of(ends, log, 4, width - 4)

    def pixel(value: float) -> float:
        return scale(min(max(value, min(ends)), max(ends)))

    bar = ""
    if low is not None and high is not None:
        # Rounding may put a mean beside an interval of no width.
        left, right = sorted((pixel(min(low, at)), pixel(max(high, at))))
        bar = f'<line x1="{left:.1f}" x2="{right:.1f}" y1="7" y2="7"/>'
    x = pixel(at)
    if min(ends) <= at <= max(ends):
        dot = f'<circle cx="{x:.1f}" cy="7" r="4.5"/>'
    else:
        tip = x + (4 if x > width / 2 else -4)
        dot = f'<path d="M{tip:.1f} 7L{x:.1f} 2.5V11.5Z"/>'
    return f'<svg class="iv" width="{width}" height="14" aria-hidden="true">{bar}{dot}</svg>'
