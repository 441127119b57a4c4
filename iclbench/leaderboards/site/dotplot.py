"""Dot plots: models' scores with their intervals, beside lines of reference, as SVG.

A page explains the marks once: ┃ the floor, and the best construction, solver and chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..row import Row, better
from .svg import Scale, power, scale_of, ticks

#: Models in a small plot, and curves in the plot against compute.
MOST_ROWS, MOST_CURVES = 7, 10

WIDTH, LABELS, VALUES = 340, 128, 42
ROW, TOP, BOTTOM = 17, 10, 34
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
    found = []
    if board.floor is not None and board.floor.score is not None:
        found.append(Reference("attainable", board.floor.label, board.floor.score))
    for kind in ("constructed", "solver", "chance"):
        rows = [row for row in board.rows if _kind(row) == kind and row.score is not None]
        best = max(rows, key=lambda row: row.goodness, default=None)
        if best is not None and best.score is not None:
            found.append(Reference(kind, best.label, best.score))
    return found


def _kind(row: Row) -> str:
    return "chance" if row.record.chance else row.origin


def board_dots(
    board: Board, about: Descriptions, most: int, root: str = "", width: int = WIDTH
) -> str | None:
    """The trained models of a board, each by its best row; None without any.

    `root` leads from the page to the site's folder; `width` is in pixels.
    """
    best: dict[str, Row] = {}
    for row in sorted(board.rows, key=lambda row: -row.goodness):
        if row.is_trained and row.score is not None:
            best.setdefault(row.record.spec.model, row)
    rows = list(best.values())[:most]
    if not rows:
        return None
    marks = references(board)
    ends = _ends(board, rows, marks)
    is_reversed = better(board.ranking) == "lower"
    left, right = LABELS, width - VALUES
    x = scale_of(ends, False, *((right, left) if is_reversed else (left, right)))
    bottom = TOP + ROW * len(rows) + 4
    metric = about.task(board.task).metric(board.ranking.metric)
    name = f"digits of the {metric}"
    if not board.has_digits:
        name = f"{metric}, {better(board.ranking)} is better"
    title = f"{about.task(board.task).title}, {board.dtype}: {name}"
    if len(name) <= MOST_NAME:
        name = f"{name}, {board.dtype}"
    parts = [
        f'<svg viewBox="0 0 {width} {bottom + BOTTOM}" role="img" aria-label="{escape(title)}">',
        *_axis(ends, board.has_digits, x, bottom),
        f'<text x="{width / 2}" y="{bottom + 29}" text-anchor="middle">{escape(name)}</text>',
        *(part for mark in marks for part in _mark(mark, board, ends, x, bottom)),
        *(part for i, row in enumerate(rows) for part in _row(row, i, ends, x, about, root, width)),
        "</svg>",
    ]
    return "".join(parts)


def _ends(board: Board, rows: Sequence[Row], marks: Sequence[Reference]) -> tuple[float, float]:
    """From nothing, or chance, to the floor; what lies beyond is shown at the edge."""
    if board.has_digits:
        scores = [row.score or 0.0 for row in rows] + [mark.value for mark in marks]
        return 0.0, max(1.0, math.ceil(max(scores)))
    known = [mark.value for mark in marks]
    chance = [mark.value for mark in marks if mark.kind == "chance"]
    scores = [row.score for row in rows if row.score is not None]
    if chance:
        # Beyond chance there is nothing to tell models apart by.
        is_lower = better(board.ranking) == "lower"
        scores = [min(v, chance[0]) if is_lower else max(v, chance[0]) for v in scores]
    low, high = min([*known, *scores]), max([*known, *scores])
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin


def _axis(ends: tuple[float, float], integers: bool, x: Scale, bottom: float) -> Iterator[str]:
    for tick, text in ticks(*ends, False, integers):
        yield f'<path class="grid" d="M{x(tick):.1f} {TOP}V{bottom}"/>'
        yield f'<text x="{x(tick):.1f}" y="{bottom + 14}" text-anchor="middle">{text}</text>'


def _clamped(value: float, ends: tuple[float, float]) -> float:
    return min(max(value, ends[0]), ends[1])


def _mark(
    mark: Reference, board: Board, ends: tuple[float, float], x: Scale, bottom: float
) -> Iterator[str]:
    at = f"{x(_clamped(mark.value, ends)):.1f}"
    text = f"{mark.name}: {formats.score(mark.value, board.ranking)}"
    yield (
        f'<path class="mark {mark.kind}" d="M{at} {TOP - 4}V{bottom}"><title>{escape(text)}</title>'
        "</path>"
    )


def _row(
    row: Row,
    index: int,
    ends: tuple[float, float],
    x: Scale,
    about: Descriptions,
    root: str,
    width: int,
) -> Iterator[str]:
    y = TOP + ROW * index + ROW / 2 + 2
    score = row.score or 0.0
    at = x(_clamped(score, ends))
    low, high = row.bounds.low, row.bounds.high
    text = f"{row.label}: {formats.score(score, row.record.ranking)}"
    if low is not None and high is not None:
        text += f" [{formats.score_interval(row)}]"
    yield f'<a href="{root}runs/{row.record.id}.html"><title>{escape(text)}</title>'
    name = about.model(row.record.spec.model).title
    yield f'<text class="name" x="{LABELS - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>'
    if low is not None and high is not None:
        a, b = (x(_clamped(v, ends)) for v in (min(low, score), max(high, score)))
        yield f'<line class="whisker" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>'
    yield f'<circle class="point" cx="{at:.1f}" cy="{y}" r="4"/>'
    value = formats.score(score, row.record.ranking).replace("-", "−")
    yield f'<text class="name" x="{width}" y="{y + 4}" text-anchor="end">{value}</text></a>'


@dataclass(frozen=True)
class CurveLine:
    """A curve with its name and the page that it leads to."""

    name: str
    page: str
    x: Sequence[float]
    y: Sequence[float | None]


def curves(lines: Sequence[CurveLine]) -> str:
    """Digits against operations of training on a logarithmic axis, every curve named at its end."""
    left, right, top = 34, WIDTH - 132, TOP
    bottom = TOP + ROW * MOST_ROWS + 4
    xs = [v for line in lines for v in line.x if v > 0]
    ys = [v for line in lines for v in line.y if v is not None]
    x_ends = (min(xs), max(xs)) if max(xs) > min(xs) else (min(xs) / 2, max(xs) * 2)
    y_ends = (min(0.0, *ys), max(1.0, *ys))
    x = scale_of(x_ends, True, left, right)
    y = scale_of(y_ends, False, bottom, top)
    parts = [f'<svg viewBox="0 0 {WIDTH} {bottom + BOTTOM}" role="img" '
             'aria-label="Digits against training compute">']  # fmt: skip
    for tick, text in ticks(*y_ends, False):
        parts.append(f'<path class="grid" d="M{left} {y(tick):.1f}H{right}"/>')
        parts.append(f'<text x="{left - 5}" y="{y(tick) + 4:.1f}" text-anchor="end">{text}</text>')
    first, last = math.ceil(math.log10(x_ends[0])), math.floor(math.log10(x_ends[1]))
    for exponent in range(first, last + 1, max(1, math.ceil((last - first) / 4))):
        at = f"{x(10.0**exponent):.1f}"
        parts.append(f'<path class="axis" d="M{at} {bottom}v4"/>')
        text = power(exponent)
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    parts.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(left + right) / 2}" y="{bottom + 30}" text-anchor="middle">'
                 "operations of one seed's training</text>")  # fmt: skip
    ends = [next((v for v in reversed(line.y) if v is not None), 0.0) for line in lines]
    labels = spread([y(v) for v in ends], 13, top + 4, bottom + 8)
    for i, line in enumerate(lines):
        points = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)
                  if b is not None and a > 0]  # fmt: skip
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        end, label = points[-1], labels[i]
        parts.append(
            f'<a href="{line.page}" class="c{i % 10}"><path class="line" d="{path}"/>'
            f'<path class="axis" d="M{end[0] + 2:.1f} {end[1]:.1f}L{right + 8} {label:.1f}"/>'
            f'<text x="{right + 11}" y="{label + 4:.1f}" class="c{i % 10} drawn">'
            f"{escape(line.name)}</text></a>"
        )
    return "".join([*parts, "</svg>"])


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
