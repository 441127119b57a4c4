"""Dot plots: models' scores with their intervals, beside lines of reference, as SVG.

A page explains the marks once: ┃ the floor, and the best construction, solver and chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from ...console import counted
from .. import formats
from ..board import Board
from ..bounds import ONE_SEED
from ..descriptions import Descriptions
from ..representative import is_one_training
from ..row import Row
from .magnitudes import extent, is_error, spans_magnitudes
from .minus import with_minus
from .settings import best_by_model, longest_first, trained
from .svg import ToPixels, to_pixels
from .ticks import spaced, ticks

#: Models in a small plot.
MOST_ROWS = 7

WIDTH, LABELS, VALUES = 340, 128, 42
ROW, TOP, BOTTOM = 17, 10, 34
#: The height of the heading of ranks.
HEAD = 11
#: The radius of a dot; with several tracks, those of the least and the most training.
RADIUS, SMALLEST, LARGEST = 4.0, 3.0, 5.5
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
    board: Board,
    tracks: Sequence[str],
    about: Descriptions,
    most: int,
    *,
    root: str = "",
    width: int = WIDTH,
    ranks: bool = False,
) -> str | None:
    """The models that were trained in tracks of a board, by their best row of each.

    The first track orders the models; None without any. `root` leads from the page to the site's
    folder; `width` is in pixels. `ranks` are shown of a single track.
    """
    lines = list(_lines(board, tracks))[:most]
    if not lines:
        return None
    rows = [row for line in lines for row in line]
    marks = references(board)
    axis = axis_of(board, rows, marks)
    longest = max(len(_values(line)) for line in lines)
    of_ranks = max(len(formats.rank(row)) for row in rows) * ranks
    beyond = 7 * of_ranks + 8 * ranks
    ends = LABELS, width - beyond - max(VALUES, 7 * longest + 10)
    top = TOP + HEAD * ranks
    frame = _Frame(
        axis=axis,
        x=to_pixels(axis[:2], axis.log, *(ends[::-1] if is_reversed(board) else ends)),
        top=top,
        bottom=top + ROW * len(lines) + 4,
        width=width,
        beyond=beyond,
        root=root,
    )
    metric = about.metric_of(board)
    name = formats.digits_of(metric)
    if not board.has_digits:
        name = f"{metric}, {board.ranking.better_score} is better"
    title = escape(f"{about.task(board.task).title}, {board.dtype}: {name}")
    if len(name) <= MOST_NAME:
        name = f"{name}, {board.dtype}"
    sizes = sizes_of(row.track for row in rows)
    parts = [
        f'<svg viewBox="0 0 {width} {frame.bottom + BOTTOM}" role="group" aria-label="{title}">',
        *_axis(frame, board.has_digits, name),
        *(part for mark in marks for part in _mark(mark, board, frame)),
        *(part for i, line in enumerate(lines) for part in _line(line, i, frame, sizes, about)),
        "</svg>",
    ]
    return "".join(parts)


def _lines(board: Board, tracks: Sequence[str]) -> Iterator[list[Row]]:
    """The best row of each track for each model, least training first; the best models first."""
    of_models: dict[str, list[Row]] = {}
    for track in tracks:
        for row in best_by_model(row for row in trained(board, track) if row.score is not None):
            of_models.setdefault(row.record.spec.model, []).append(row)
    order = longest_first(tracks)[::-1]
    for rows in of_models.values():
        yield sorted(rows, key=lambda row: order.index(row.track))


def sizes_of(tracks: Iterable[str]) -> dict[str, float]:
    """The radius of a dot for each track, the largest for the most training."""
    order = longest_first(set(tracks))[::-1]
    if len(order) == 1:
        return {order[0]: RADIUS}
    return {
        track: SMALLEST + (LARGEST - SMALLEST) * i / (len(order) - 1)
        for i, track in enumerate(order)
    }


def is_reversed(board: Board) -> bool:
    """Whether the axis has its smallest value at the right, where the best is."""
    return board.ranking.better_score == "lower"


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
    top: float
    bottom: float
    width: int
    #: The room for ranks at the right of the scores; 0 without ranks.
    beyond: int
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
        return Axis(
            max(low, LEAST_DIGITS), max(1.0, math.ceil(max(scores, default=0.0))), log=False
        )
    known = [mark.value for mark in marks]
    chance = [mark.value for mark in marks if mark.kind == "chance"]
    scores = [row.score for row in rows if row.score is not None]
    if chance:
        # Beyond chance there is nothing to tell models apart by.
        within = min if is_reversed(board) else max
        scores = [within(v, chance[0]) for v in scores]
    low, high = extent([*known, *scores], log=False) or (0.0, 1.0)
    if is_error(board.first) and spans_magnitudes([low, high]):
        margin = high**0.06 / low**0.06  # high / low may overflow
        return Axis(low / margin, high * margin, log=True)
    margin = 0.06 * (high - low) or max(0.5, abs(low) / 20)  # beside 1e17, 0.5 is nothing
    return Axis(low - margin, high + margin, log=False)


def _axis(frame: _Frame, integers: bool, name: str) -> Iterator[str]:
    for tick, text in spaced(ticks(*frame.axis, integers), frame.x):
        at = f"{frame.x(tick):.1f}"
        yield f'<path class="grid" d="M{at} {frame.top}V{frame.bottom}"/>'
        yield f'<text x="{at}" y="{frame.bottom + 14}" text-anchor="middle">{text}</text>'
    middle, y = frame.width / 2, frame.bottom + 29
    yield f'<text x="{middle}" y="{y}" text-anchor="middle">{escape(name)}</text>'
    if frame.beyond:
        yield f'<text x="{frame.width}" y="{HEAD}" text-anchor="end">rank</text>'


def _mark(mark: Reference, board: Board, frame: _Frame) -> Iterator[str]:
    text = escape(f"{mark.name}: {with_minus(formats.score(mark.value, board.ranking))}")
    path = f"M{frame.at(mark.value):.1f} {frame.top - 4}V{frame.bottom}"
    yield f'<path class="mark {mark.kind}" d="{path}"><title>{text}</title></path>'


def _line(
    rows: Sequence[Row], index: int, frame: _Frame, sizes: dict[str, float], about: Descriptions
) -> Iterator[str]:
    """A model: its name, a dot for each of its rows, which link to their pages, and its scores."""
    y = frame.top + ROW * index + ROW / 2 + 2
    last, at = rows[-1], frame.width - frame.beyond
    name = escape(about.model(last.record.spec.model).title)
    texts = [
        f'<text class="name" x="{LABELS - 8}" y="{y + 4}" text-anchor="end">{name}</text>',
        f'<text class="name" x="{at}" y="{y + 4}" text-anchor="end">{_values(rows)}</text>',
    ]
    if frame.beyond:
        rank = escape(formats.rank(last))
        texts.append(f'<text x="{frame.width}" y="{y + 4}" text-anchor="end">{rank}</text>')
    if len(rows) > 1:
        xs = [frame.at(row.score or 0.0) for row in rows]
        yield f'<path class="between" d="M{min(xs):.1f} {y}H{max(xs):.1f}"/>'
    # A small dot on a larger one can be seen. The names belong to the longest training.
    for row in reversed(rows):
        yield f'<a href="{frame.root}runs/{row.record.id}.html">'
        yield f"<title>{escape(_about(row, has_track=len(sizes) > 1))}</title>"
        yield from texts if row is last else []
        yield from _dot(row, y, frame, sizes[row.track])
        yield "</a>"


def _about(row: Row, *, has_track: bool) -> str:
    """A row in words: its score, interval, seeds and what else a reader must know."""
    track = f", {row.track_name}" * has_track
    interval = f" [{with_minus(formats.score_interval(row))}]" if row.bounds.kind else ""
    notes = [counted(row.seeds, "seed"), formats.notes(row, stale=False)]
    return f"{row.label_in_track}{track}: {_value(row)}{interval}, {', '.join(filter(None, notes))}"


def _dot(row: Row, y: float, frame: _Frame, radius: float) -> Iterator[str]:
    """A row's dot on the bar of its interval."""
    score = row.score or 0.0
    low, high = row.bounds.low, row.bounds.high
    if low is not None and high is not None:
        # Rounding may put a mean beside an interval of no width.
        a, b = frame.at(min(low, score)), frame.at(max(high, score))
        yield f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>'
    yield point(score, y, frame.axis, frame.x, radius)


def _values(rows: Sequence[Row]) -> str:
    """The score of the least and of the most training."""
    return " → ".join(map(_value, rows if len(rows) == 1 else (rows[0], rows[-1])))


def _value(row: Row) -> str:
    """The score, with the mark of a single seed."""
    mark = f" {ONE_SEED}" if is_one_training(row.record) else ""
    return with_minus(formats.score(row.score or 0.0, row.record.ranking)) + mark


def point(score: float, y: float, axis: Axis, to_x: ToPixels, radius: float) -> str:
    """A dot, or an arrow at the end of the axis beyond which the score lies."""
    low, high = axis.low, axis.high
    x = to_x(min(max(score, low), high))
    if low <= score <= high:
        return f'<circle class="point" cx="{x:.1f}" cy="{y}" r="{radius:g}"/>'
    points_right = (score > high) == (to_x(high) > to_x(low))
    tip = x + (radius + 1) * (1 if points_right else -1)
    edges = f"{y - radius - 1:g}V{y + radius + 1:g}"
    return f'<path class="point beyond" d="M{tip:.1f} {y}L{x:.1f} {edges}Z"/>'
