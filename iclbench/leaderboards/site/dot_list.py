"""Dot plots in HTML: a line of text with its dots on a common axis, readable on a phone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .figure import View
from .hues import style
from .magnitudes import can_show, extent
from .ticks import ticks

#: The pixels of an axis on a phone, of a character of its ticks, and between two of them.
NARROW, CHARACTER, GAP = 200, 7, 8
#: The pixels of a dot, and by how many those that would cover each other are above or below.
DOT, LANE = 10, 8


@dataclass(frozen=True)
class Dot:
    """A value with its range, in the color and shape and with the name of its line."""

    value: float
    text: str
    hue: int = 0
    name: str = ""
    low: float | None = None
    high: float | None = None
    #: What others are compared with, such as the floor, is a line.
    reference: bool = False


def dot_plot(
    title: str, axis: str, lines: Sequence[tuple[str, Sequence[Dot]]], *, log: bool
) -> View:
    """The view of a dot plot, a line per label; what an axis can't show is left out."""
    values = [v for _, dots in lines for d in dots for v in (d.value, d.low, d.high)]
    low, high = extent(values, log) or ((1.0, 10.0) if log else (0.0, 1.0))
    ends = _widened(low, high, log)
    return {
        "title": title,
        "axis": axis,
        "ticks": _ticks(ends, log),
        "lines": [_line(label, dots, ends, log) for label, dots in lines],
        "legend": _legend(lines),
    }


def _line(label: str, dots: Sequence[Dot], ends: tuple[float, float], log: bool) -> View:
    """A label with the dots that an axis can show, none of which covers another on a phone."""
    shown = [dot for dot in dots if can_show(dot.value, log)]
    # Lines of reference are as high as the row, behind its dots.
    shown.sort(key=lambda dot: not dot.reference)
    lanes = _lanes([_at(dot.value, ends, log) for dot in shown if not dot.reference])
    heights = iter(lanes)
    return {
        "label": label,
        "dots": [_dot(d, ends, log) | {"up": 0 if d.reference else LANE * next(heights)}
                 for d in shown],
        "height": DOT + 6 + 2 * LANE * max(map(abs, lanes), default=0),
    }  # fmt: skip


def _lanes(places: Sequence[float]) -> list[int]:
    """By how many steps each dot is above or below the middle: the fewest that keep it free."""
    taken: list[tuple[float, int]] = []
    for place in places:
        near = {lane for at, lane in taken if abs(at - place) * NARROW / 100 < DOT}
        taken.append((place, next(lane for lane in _middle_out() if lane not in near)))
    return [lane for _, lane in taken]


def _ticks(ends: tuple[float, float], log: bool) -> list[tuple[str, str]]:
    """As many ticks as have room on a phone: their places in percent, and texts."""
    places = [(_at(v, ends, log), text) for v, text in ticks(*ends, log)]
    # The first and the last are the fewest that tell a scale.
    steps = [*range(1, len(places)), len(places) - 1 or 1]
    choices = [places[::step] for step in steps]
    kept = next((chosen for chosen in choices if len(chosen) > 1 and _fit(chosen)), places[:1])
    return [(f"{at:.2f}", text) for at, text in kept]


def _fit(ticks: Sequence[tuple[float, str]]) -> bool:
    """Whether no two of these ticks touch on a phone."""
    return all(
        (right - left) / 100 * NARROW >= (len(before) + len(after)) / 2 * CHARACTER + GAP
        for (left, before), (right, after) in itertools.pairwise(ticks)
    )


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """Room on both sides, so that no dot is cut."""
    if log:
        span = math.log10(high) - math.log10(low)  # high / low may overflow
        edge = max(0.06 * span, (2 - span) / 2)  # two decades, at least
        return low / 10**edge, high * 10**edge
    span = high - low if high > low else max(abs(high), 1.0)
    return low - 0.06 * span, high + 0.06 * span


def _at(value: float, ends: tuple[float, float], log: bool) -> float:
    """The value's place on the axis, in percent."""
    low, high, at = (math.log(v) for v in (*ends, value)) if log else (*ends, value)
    return 100 * (at - low) / (high - low)


def _middle_out() -> Iterator[int]:
    """Steps from the middle: 0, 1, -1, 2, and so on."""
    return ((i + 1) // 2 * (1 if i % 2 else -1) for i in itertools.count())


def _dot(dot: Dot, ends: tuple[float, float], log: bool) -> View:
    at = _at(dot.value, ends, log)
    low, high = (
        _at(v, ends, log) if v is not None and can_show(v, log) else at for v in (dot.low, dot.high)
    )
    return {
        "left": f"{at:.2f}",
        "low": f"{low:.2f}",
        "width": f"{high - low:.2f}",
        "style": _style(dot),
        "text": dot.text,
        "name": dot.name,
    }


def _style(dot: Dot) -> str:
    """The classes of a dot: its color and its shape, or those of a line of reference."""
    known = style(dot.hue)
    return "reference" if dot.reference else f"c{known['color']} {known['dash']}"


def _legend(lines: Sequence[tuple[str, Sequence[Dot]]]) -> list[dict[str, str]]:
    """The named lines in order of appearance; none for a single one."""
    names = {dot.name: _style(dot) for _, dots in lines for dot in dots if dot.name}
    if len(names) < 2:
        return []
    return [{"name": name, "style": classes} for name, classes in names.items()]
