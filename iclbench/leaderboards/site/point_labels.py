"""Names beside the points of a plot in which every line is one point: near it, and on no other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from .end_labels import Point

#: The pixels of a character, of a capital or digit, of a line of text, and of a point with its
#: margin.
CHARACTER, CAPITAL, LINE, POINT = 7.0, 9.0, 12.0, 5.5
#: The room at both ends of a name.
BESIDE = 2.0
#: How near and far a name may be from its point, in steps, and beyond what a thin line leads to it.
NEAREST, FARTHEST, STEP, LEAD = 5, 110, 6, 12


class Box(NamedTuple):
    """A rectangle of a drawing, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that two rectangles share."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, width) * max(0.0, height)


def place(points: Sequence[Point], names: Sequence[str], bars: Sequence[Box], room: Box) -> (
    list[Box]
):  # fmt: skip
    """The box of each point's name inside the room: the nearest one that covers nothing.

    `bars` are the points' intervals. Where no box is free, the one that covers least is taken.
    """
    taken = [Box(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in points] + list(bars)
    boxes: dict[int, Box] = {}
    # Points with close neighbours have the least choice.
    for i in sorted(range(len(points)), key=lambda i: _nearest(points, i)):
        best, least = None, math.inf
        for box in _candidates(points[i], _width(names[i]) + 2 * BESIDE):
            outside = (box.right - box.left) * LINE - box.overlap(room)
            covered = 4 * outside + sum(box.overlap(other) for other in taken)
            if covered < least - 1e-6:
                best, least = box, covered
            if covered < 1e-6:
                break
        assert best is not None
        boxes[i] = best
        taken.append(best)
    return [boxes[i] for i in range(len(points))]


def _width(name: str) -> float:
    wide = sum(character.isupper() or character.isdigit() for character in name)
    return CHARACTER * (len(name) - wide) + CAPITAL * wide


def _nearest(points: Sequence[Point], index: int) -> float:
    """The distance of a point to the nearest other one."""
    others = [math.dist(points[index], point) for i, point in enumerate(points) if i != index]
    return min(others, default=math.inf)


def _candidates(point: Point, width: float) -> Iterator[Box]:
    """Boxes around a point, near ones first; at one distance those beside it come first."""
    x, y = point
    for distance in range(NEAREST, FARTHEST, STEP):
        for angle in (0, 180, 30, -30, 150, -150, 60, -60, 120, -120, 90, -90):
            dx, dy = math.cos(math.radians(angle)), -math.sin(math.radians(angle))
            middle = y + dy * (distance + LINE / 2 * abs(dy))
            # The box's nearer side is at the distance, or it is centered above or below.
            left = x + dx * distance - width * (1 - dx) / 2
            yield Box(left, middle - LINE / 2, left + width, middle + LINE / 2)


def label(name: str, point: Point, box: Box) -> Iterator[str]:
    """A name in its box, and a thin line to it from a point that is far."""
    x, y = point
    at = min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)
    if math.dist(point, at) > LEAD:
        yield f'<path class="lead" d="M{x:.1f} {y:.1f}L{at[0]:.1f} {at[1]:.1f}"/>'
    baseline = box.bottom - 2.5
    # The box only estimates the width: a name at the left of its point ends there.
    at_end = (box.right - BESIDE, ' text-anchor="end"')
    side, anchor = at_end if box.right < x else (box.left + BESIDE, "")
    yield f'<text class="end" x="{side:.1f}" y="{baseline:.1f}"{anchor}>{escape(name)}</text>'
