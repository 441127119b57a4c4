"""Dot plots: models' scores with their intervals, beside lines of reference, as SVG.

A page explains the marks once: ┃ the floor, and the best construction, solver and chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..representative import is_one_training
from ..row import Row
from .magnitudes import extent, is_error, spans_magnitudes
from .minus import with_minus
from .settings import best_by_model, trained
from .svg import ToPixels, to_pixels
from .ticks import spaced, ticks

#: Models in a small plot.
MOST_ROWS = 7

WIDTH, LABELS, VALUES = 340, 128, 42
ROW, TOP, BOTTOM = 17, 10, 34
#: Where the axis of digits begins at the lowest.
LEAST_DIGITS = -1.0
#: Characters of an axis's name that leave room for the dtype.
MOST_NAME = 44


@dataclass(frozen=True)
class Reference:
    """A line of reference: its kind, which is a class of the style sheet, its name and value."""

    kind: str
    name: str
    value: float


def references(board: Board) -> list[Reference]:
    """The floor, and the best row of each other origin and of chance, where there are any."""
    best_rows = []
    if board.floor is not None and board.floor.score is not None:
        kind = "target" if board.floor.kind == "none" else "attainable"
        best_rows.append(Reference(kind, board.floor.label, board.floor.score))
    for kind in ("constructed", "solver", "asked", "chance"):
        rows = [row for row in board.rows if _kind(row) == kind and row.score is not None]
        best = max(rows, key=lambda row: row.goodness, default=None)
        if best is not None and best.score is not None:
            best_rows.append(Reference(kind, best.label, best.score))
    return best_rows


def _kind(row: Row) -> str:
    return "chance" if row.record.chance else row.origin


def board_dots(
    board: Board, track: str, about: Descriptions, most: int, *, root: str = "", width: int = WIDTH
) -> str | None:
    """The models that were trained in a track of a board, each by its best row; None without any.

    `root` leads from the page to the site's folder; `width` is in pixels.
    """
    rows = best_by_model(row for row in trained(board, track) if row.score is not None)[:most]
    if not rows:
        return None
    marks = references(board)
    axis = axis_of(board, rows, marks)
    is_reversed = board.ranking.better_score == "lower"
    longest = max(len(_value(row)) for row in rows)
    left, right = LABELS, width - max(VALUES, 7 * longest + 10)
    frame = _Frame(
        axis=axis,
        x=to_pixels(axis[:2], axis.log, *((right, left) if is_reversed else (left, right))),
        bottom=TOP + ROW * len(rows) + 4,
        width=width,
        root=root,
    )
    metric = about.metric_of(board)
    name = formats.digits_of(metric)
    if not board.has_digits:
        name = f"{metric}, {board.ranking.better_score} is better"
    title = escape(f"{about.task(board.task).title}, {board.dtype}: {name}")
    if len(name) <= MOST_NAME:
        name = f"{name}, {board.dtype}{f', {track}' * bool(track)}"
    names = [about.model(row.record.spec.model).title for row in rows]
    parts = [
        f'<svg viewBox="0 0 {width} {frame.bottom + BOTTOM}" role="group" aria-label="{title}">',
        *_axis(frame, board.has_digits, name),
        *(part for mark in marks for part in _mark(mark, board, frame)),
        *(part for i, row in enumerate(rows) for part in _row(row, names[i], i, frame)),
        "</svg>",
    ]
    return "".join(parts)


class Axis(NamedTuple):
    """The ends of an axis, and whether it is logarithmic."""

    low: float
    high: float
    log: bool


@dataclass(frozen=True)
class _Frame:
    """Where a plot has its values: its axis, the map of that to pixels, and its size."""

    axis: Axis
    x: ToPixels
    bottom: float
    width: int
    root: str

    def at(self, value: float) -> float:
        """The pixel of a value, or of the end beyond which it lies."""
        return self.x(min(max(value, self.axis.low), self.axis.high))


def axis_of(board: Board, rows: Sequence[Row], marks: Sequence[Reference]) -> Axis:
    """From nothing, or chance, to the floor; what lies beyond is shown at the edge.

    Errors of many magnitudes are on a logarithmic axis.
    """
    if board.has_digits:
        scores = [row.score or 0.0 for row in rows] + [mark.value for mark in marks]
        low = min([0.0, *scores, *(row.bounds.low or 0.0 for row in rows)])
        return Axis(max(low, LEAST_DIGITS), max(1.0, math.ceil(max(scores))), log=False)
    known = [mark.value for mark in marks]
    chance = [mark.value for mark in marks if mark.kind == "chance"]
    scores = [row.score for row in rows if row.score is not None]
    if chance:
        # Beyond chance there is nothing to tell models apart by.
        is_lower = board.ranking.better_score == "lower"
        scores = [min(v, chance[0]) if is_lower else max(v, chance[0]) for v in scores]
    low, high = extent([*known, *scores], log=False) or (0.0, 1.0)
    if is_error(board.rows[0].record) and spans_magnitudes([low, high]):
        margin = high**0.06 / low**0.06  # high / low may overflow
        return Axis(low / margin, high * margin, log=True)
    margin = 0.06 * (high - low) or 0.5
    return Axis(low - margin, high + margin, log=False)


def _axis(frame: _Frame, integers: bool, name: str) -> Iterator[str]:
    for tick, text in spaced(ticks(*frame.axis, integers), frame.x):
        at = f"{frame.x(tick):.1f}"
        yield f'<path class="grid" d="M{at} {TOP}V{frame.bottom}"/>'
        yield f'<text x="{at}" y="{frame.bottom + 14}" text-anchor="middle">{text}</text>'
    middle, y = frame.width / 2, frame.bottom + 29
    yield f'<text x="{middle}" y="{y}" text-anchor="middle">{escape(name)}</text>'


def _mark(mark: Reference, board: Board, frame: _Frame) -> Iterator[str]:
    text = escape(f"{mark.name}: {formats.score(mark.value, board.ranking)}")
    path = f"M{frame.at(mark.value):.1f} {TOP - 4}V{frame.bottom}"
    yield f'<path class="mark {mark.kind}" d="{path}"><title>{text}</title></path>'


def _row(row: Row, name: str, index: int, frame: _Frame) -> Iterator[str]:
    y = TOP + ROW * index + ROW / 2 + 2
    score = row.score or 0.0
    low, high = row.bounds.low, row.bounds.high
    value = _value(row)
    interval = f" [{formats.score_interval(row)}]" if row.bounds.kind else ""
    text = escape(f"{row.label}: {value}{interval}")
    yield f'<a href="{frame.root}runs/{row.record.id}.html"><title>{text}</title>'
    yield f'<text class="name" x="{LABELS - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
    if low is not None and high is not None:
        # Rounding may put a mean beside an interval of no width.
        a, b = frame.at(min(low, score)), frame.at(max(high, score))
        yield f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>'
    yield _point(score, y, frame)
    yield f'<text class="name" x="{frame.width}" y="{y + 4}" text-anchor="end">{value}</text></a>'


def _value(row: Row) -> str:
    """The score, with the mark of a single seed."""
    mark = f" {formats.ONE_SEED}" if is_one_training(row.record) else ""
    return with_minus(formats.score(row.score or 0.0, row.record.ranking)) + mark


def _point(score: float, y: float, frame: _Frame) -> str:
    """A dot, or an arrow at the end of the axis beyond which the score lies."""
    x, low, high = frame.at(score), frame.axis.low, frame.axis.high
    if low <= score <= high:
        return f'<circle class="point" cx="{x:.1f}" cy="{y}" r="4"/>'
    points_right = (score > high) == (frame.x(high) > frame.x(low))
    tip = x + (5 if points_right else -5)
    return f'<path class="point beyond" d="M{tip:.1f} {y}L{x:.1f} {y - 5}V{y + 5}Z"/>'
