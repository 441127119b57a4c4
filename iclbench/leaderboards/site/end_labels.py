"""Names at the ends of lines, where a plot has more of them than colors tell apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from html import escape

#: The room for a line of text, in pixels.
LINE = 13
#: The pixels from the ends of lines and from the axis to those of the thin lines to their names.
START, STOP = 2, 8

#: A point of a drawing, in pixels.
Point = tuple[float, float]


def label_heights(ends: Sequence[Point], right: float, low: float, high: float) -> list[float]:
    """The height of each end's name, right of the pixel `right`: thin lines to them do not cross.

    Swapping the names of two that cross makes both shorter together, so there is a last swap.
    """
    heights = spread([y for _, y in ends], LINE, low, high)
    pairs = list(itertools.combinations(range(len(ends)), 2))
    is_tangled = True
    while is_tangled:
        is_tangled = False
        for i, j in pairs:
            if _cross((ends[i], heights[i]), (ends[j], heights[j]), right):
                heights[i], heights[j] = heights[j], heights[i]
                is_tangled = True
    return heights


def _cross(one: tuple[Point, float], other: tuple[Point, float], right: float) -> bool:
    """Whether the thin lines from two ends to the heights of their names cross."""
    first = max(one[0][0], other[0][0]) + START
    before, after = (
        _height(*one, right, x) - _height(*other, right, x) for x in (first, right + STOP)
    )
    return before * after < -1e-9


def _height(end: Point, height: float, right: float, x: float) -> float:
    """The height at the pixel `x` of the thin line from an end to its name."""
    part = (x - end[0] - START) / (right + STOP - end[0] - START)
    return end[1] + part * (height - end[1])


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, in their order, at least `gap` apart and within the ends.

    Where there is no room for all, they are as far apart as there is room.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    placed: list[float] = []
    for i in order:
        placed.append(max(wanted[i], placed[-1] + gap if placed else low))
    limit = high
    for k in reversed(range(len(placed))):
        placed[k] = min(placed[k], limit)
        limit = placed[k] - gap
    result = [0.0] * len(wanted)
    for position, i in zip(placed, order, strict=True):
        result[i] = position
    return result


def label(name: str, end: Point, right: float, y: float) -> Iterator[str]:
    """A name at the height `y`, right of the pixel `right`, and a thin line to it from the end."""
    x, at = end
    yield f'<path class="lead" d="M{x + START:.1f} {at:.1f}L{right + STOP:.1f} {y:.1f}"/>'
    yield f'<text class="end" x="{right + STOP + 3:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
