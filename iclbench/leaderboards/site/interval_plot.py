"""The small plot of an interval in a table: a bar, a dot, and lines of chance and floor."""

from __future__ import annotations

import math
from collections.abc import Iterable

from .dotplot import Axis, Reference
from .svg import to_pixels

WIDTH = 90
#: The lines that are drawn.
SHOWN = frozenset({"attainable", "target", "chance"})


def interval_plot(
    low: float | None,
    high: float | None,
    at: float | None,
    axis: Axis,
    marks: Iterable[Reference] = (),
) -> str:
    """A bar from low to high, and a dot at the score; empty without one.

    The axis begins at the left. What lies beyond it is cut, and a score there is an arrow.
    """
    if at is None or not math.isfinite(at):
        return ""
    ends = axis[:2]
    scale = to_pixels(ends, axis.log, 4, WIDTH - 4)

    def pixel(value: float) -> float:
        return scale(min(max(value, min(ends)), max(ends)))

    parts = [
        f'<path class="mark {mark.kind}" d="M{pixel(mark.value):.1f} 0V14"/>'
        for mark in marks
        if mark.kind in SHOWN
    ]
    if low is not None and high is not None:
        # Rounding may put a mean beside an interval of no width.
        left, right = sorted((pixel(min(low, at)), pixel(max(high, at))))
        parts.append(f'<line x1="{left:.1f}" x2="{right:.1f}" y1="7" y2="7"/>')
    x = pixel(at)
    if min(ends) <= at <= max(ends):
        parts.append(f'<circle cx="{x:.1f}" cy="7" r="4.5"/>')
    else:
        tip = x + (4 if x > WIDTH / 2 else -4)
        parts.append(f'<path d="M{tip:.1f} 7L{x:.1f} 2.5V11.5Z"/>')
    return f'<svg class="iv" width="{WIDTH}" height="14" aria-hidden="true">{"".join(parts)}</svg>'
