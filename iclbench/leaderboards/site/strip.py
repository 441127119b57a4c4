"""A strip: where one row stands among the rows beside it, on the axis of their board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .. import formats
from ..board import Board
from ..row import Row
from . import dotplot
from .minus import with_minus
from .svg import ToPixels, to_pixels
from .ticks import spaced, ticks

WIDTH, SIDE, MIDDLE, AXIS = 560, 12, 12, 26
#: The most rings of a strip: more lie on one another, and each is a link that makes pages long.
MOST_RINGS = 60
#: A strip in a table has no text.
SMALL = 240


def peers(row: Row, board: Board) -> list[Row]:
    """The rows that a row is compared with: trained ones of its track, or those of its origin."""
    return [
        one
        for one in board.rows
        if one.score is not None and one.origin == row.origin and one.track == row.track
    ]


def rank_of_how_many(row: Row, board: Board) -> str:
    """The rank with the number of rows that are ranked together; empty without a rank."""
    if row.rank is None:
        return ""
    ranked = sum(one.rank is not None and one.track == row.track for one in board.rows)
    return f"{row.rank} of {ranked}"


def strip(row: Row, board: Board, *, small: bool = False) -> str:
    """The row as a full dot with its interval, the rows beside it as rings, and the references.

    Beyond the axis, it is an arrow. Empty without a score. The rings are links to the pages beside
    the row's own, except in a `small` strip for tables.
    """
    if row.score is None:
        return ""
    rows, marks = peers(row, board), dotplot.references(board)
    axis = dotplot.axis_of(board, rows, marks)
    width = SMALL if small else WIDTH
    ends = (SIDE, width - SIDE)
    ends = ends[::-1] if dotplot.is_reversed(board) else ends
    x = to_pixels((axis.low, axis.high), axis.log, *ends)

    def at(value: float) -> float:
        return x(min(max(value, axis.low), axis.high))

    height = MIDDLE * 2 if small else AXIS + 18
    score = formats.score(row.score, board.ranking)
    label = escape(with_minus(f"{score} among {len(rows)} rows"))
    parts = [
        f'<svg class="strip" viewBox="0 0 {width} {height}" role="{"img" if small else "group"}" '
        f'aria-label="{label}">',
        f'<path class="axis" d="M{SIDE} {MIDDLE}H{width - SIDE}"/>',
        *([] if small else _ticks(axis, x, board)),
        *(f'<path class="mark {mark.kind}" d="M{at(mark.value):.1f} 2V{2 * MIDDLE - 2}"/>'
          for mark in marks),
        *(part for one in _around(row, rows) for part in _ring(one, at, is_link=not small)),
        *_whisker(row, at),
        f"{dotplot.point(row.score, MIDDLE, axis, x, 5)}</svg>",
    ]  # fmt: skip
    return "".join(parts)


def _around(row: Row, rows: Sequence[Row]) -> list[Row]:
    """The other rows; of many, evenly spaced ones in their order, with the first and the last."""
    others = [one for one in rows if one is not row]
    if len(others) <= MOST_RINGS:
        return others
    last = len(others) - 1
    return [others[round(i * last / (MOST_RINGS - 1))] for i in range(MOST_RINGS)]


def _ticks(axis: dotplot.Axis, x: ToPixels, board: Board) -> Iterator[str]:
    for value, text in spaced(ticks(*axis, board.has_digits), x):
        yield f'<text x="{x(value):.1f}" y="{AXIS + 14}" text-anchor="middle">{text}</text>'


def _ring(row: Row, at: ToPixels, *, is_link: bool) -> Iterator[str]:
    """Another row."""
    ring = f'<circle class="ring" cx="{at(row.score or 0.0):.1f}" cy="{MIDDLE}" r="3.5"/>'
    if not is_link:
        yield ring
        return
    text = escape(with_minus(f"{row.label}: {formats.score(row.score, row.record.ranking)}"))
    yield f'<a href="{row.record.id}.html"><title>{text}</title>{ring}</a>'


def _whisker(row: Row, at: ToPixels) -> Iterator[str]:
    low, high = row.bounds.low, row.bounds.high
    if low is not None and high is not None:
        ends = f'x1="{at(low):.1f}" x2="{at(high):.1f}"'
        yield f'<line class="whisker" {ends} y1="{MIDDLE}" y2="{MIDDLE}"/>'
