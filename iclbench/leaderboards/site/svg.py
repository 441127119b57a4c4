"""Draw a figure as SVG, which readers see before Plotly is loaded, or without scripts.

Colors are classes of the style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape

from .plots import Plot, extent

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 22, 12, 44

#: Maps a value to a pixel.
Scale = Callable[[float], float]


def draw(plot: Plot) -> str:
    """The figure as one SVG element; the page shows its title and legend as text."""
    x_ends = _ends([v for line in plot["lines"] for v in line["x"]], plot["x"]["log"])
    y_ends = _ends([v for line in plot["lines"] for v in line["y"]], plot["y"]["log"])
    x = _scale(x_ends, plot["x"]["log"], LEFT, WIDTH - RIGHT)
    y = _scale(y_ends, plot["y"]["log"], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot["title"])}">',
        *_axes(plot, x_ends, y_ends, x, y),
        *(part for line in plot["lines"] for part in _line(line, plot, x, y)),
        "</svg>",
    ]
    return "".join(parts)


def _ends(values: list[float | None], log: bool) -> tuple[float, float]:
    low, high = extent(values, log) or ((1.0, 10.0) if log else (0.0, 1.0))
    if log:
        return (low / 2, high * 2) if low == high else (low, high)
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _scale(ends: tuple[float, float], log: bool, start: float, end: float) -> Scale:
    low, high = (math.log10(v) for v in ends) if log else ends

    def scale(value: float) -> float:
        at = math.log10(value) if log else value
        return start + (at - low) / (high - low) * (end - start)

    return scale


def _axes(
    plot: Plot, x_ends: tuple[float, float], y_ends: tuple[float, float], x: Scale, y: Scale
) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick, text in ticks(*y_ends, plot["y"]["log"]):
        at = f"{y(tick):.1f}"
        yield f'<line class="grid" x1="{LEFT}" y1="{at}" x2="{right}" y2="{at}"/>'
        yield f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>'
    for tick, text in ticks(*x_ends, plot["x"]["log"]):
        yield f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    middle = (LEFT + right) / 2
    title = escape(plot["x"]["title"])
    yield f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{title}</text>'
    yield (
        f'<text transform="translate(12 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot['y']['title'])}</text>"
    )


def ticks(low: float, high: float, log: bool) -> list[tuple[float, str]]:
    """About six round values at most between the ends, with their text."""
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        step = max(1, math.ceil((last - first + 1) / 6))
        exponents = list(range(first, last + 1, step))
        if len(exponents) > 1 or (low > 0 and high / low > 50):
            return [(10.0**e, f"1e{e}" if abs(e) > 3 else f"{10.0**e:g}") for e in exponents]
    size = 10 ** math.floor(math.log10((high - low) / 5))
    step_size = next(m * size for m in (1, 2, 5, 10) if (high - low) / (m * size) <= 6)
    start = math.ceil(low / step_size - 1e-9)
    count = math.floor(high / step_size + 1e-9) - start + 1
    values = [(start + i) * step_size for i in range(count)]
    return [(v, f"{v:.6g}") for v in values if not log or v > 0]


def _line(line: Plot, plot: Plot, x: Scale, y: Scale) -> Iterator[str]:
    """One path, with gaps where a value is missing, and dots if there are few values."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for a, b in zip(line["x"], line["y"], strict=True):
        if _shown(a, plot["x"]["log"]) and _shown(b, plot["y"]["log"]):
            pieces[-1].append((x(a), y(b)))
        elif pieces[-1]:
            pieces.append([])
    kind = "dotted" if line.get("dotted") else f"c{line['color']}"
    path = "".join(
        "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in piece) for piece in pieces if piece
    )
    if path:
        yield f'<path class="line {kind}" d="{path}"><title>{escape(line["name"])}</title></path>'
    if len(line["x"]) <= 12 and not line.get("dotted"):
        for a, b in (point for piece in pieces for point in piece):
            yield f'<circle class="dot {kind}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>'


def _shown(value: float | None, log: bool) -> bool:
    return value is not None and math.isfinite(value) and (value > 0 or not log)


def interval(
    low: float | None, high: float | None, at: float | None, ends: tuple[float, float]
) -> str:
    """A row's interval plot: a bar from low to high, and a dot at the score; empty without one."""
    if at is None or not math.isfinite(at):
        return ""
    width = 120
    scale = _scale(ends, False, 4, width - 4)
    bar = ""
    if low is not None and high is not None:
        bar = f'<line x1="{scale(low):.1f}" x2="{scale(high):.1f}" y1="8" y2="8"/>'
    dot = f'<circle cx="{scale(at):.1f}" cy="8" r="3.5"/>'
    return f'<svg class="iv" width="{width}" height="16" aria-hidden="true">{bar}{dot}</svg>'
