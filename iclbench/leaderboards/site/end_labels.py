"""Names at the ends of lines, where a plot has more of them than colors tell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

#: The room for a line of text, in pixels.
LINE = 13


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


def label(name: str, end: tuple[float, float], right: float, y: float) -> Iterator[str]:
    """A name at the height `y`, right of the pixel `right`, and a thin line to it from the end."""
    x, at = end
    yield f'<path class="lead" d="M{x + 2:.1f} {at:.1f}L{right + 8:.1f} {y:.1f}"/>'
    yield f'<text class="end" x="{right + 11:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
