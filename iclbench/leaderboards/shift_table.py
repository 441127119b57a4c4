"""Shifts by models: the score of each row of a board under each shift that a record holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from ..api.record import MAIN, Ranking, Record
from ..api.results import Evaluation
from .board import Board
from .row import Row, has_digits

#: The first line of a matrix: the prompts that models train on.
TRAINED = "as in training"


@dataclass(frozen=True)
class Line:
    """A line of the matrix. `score` is what its cells are: `digits`, or the mean of a metric.

    `cells` are in the order of the board's rows: a score, None for a record without the shift, or
    the reason why it does not apply.
    """

    shift: str
    score: str
    floor: float | None
    cells: tuple[float | str | None, ...]


def shift_lines(board: Board) -> list[Line]:
    """The lines of a board: training's prompts first, then every shift; empty without shifts.

    Where a shift scales the targets, a second line has the digits relative to their root mean
    square.
    """
    records = board.records
    names = sorted({name for r in records for name in (*r.evaluations, *r.not_applicable)} - {MAIN})
    if not names:
        return []
    return [
        _line(records, MAIN, relative=False),
        *(_line(records, name, relative=relative)
          for name in names for relative in _kinds(records, name)),
    ]  # fmt: skip


def _kinds(records: Sequence[Record], name: str) -> tuple[bool, ...]:
    """Whether the lines of a shift are relative to the size of the targets."""
    sizes = {r.evaluations[name].target_size for r in records if name in r.evaluations}
    return (False,) if sizes <= {None} else (False, True)


def _line(records: Sequence[Record], name: str, *, relative: bool) -> Line:
    ranking = records[0].ranking
    evaluated = [record.evaluations[name] for record in records if name in record.evaluations]
    in_digits = has_digits(ranking) and all(e.floor.kind == "exact" for e in evaluated)
    score = "digits" if in_digits else f"mean {ranking.metric}"
    floors = (_score(e, ranking, in_digits, relative, floor=True) for e in evaluated)
    cells = tuple(
        _score(record.evaluations[name], ranking, in_digits, relative)
        if name in record.evaluations
        else record.not_applicable.get(name)
        for record in records
    )
    shift = TRAINED if name == MAIN else f"{name}, relative" if relative else name
    return Line(shift, score, next(floors, None), cells)


def _score(
    evaluation: Evaluation,
    ranking: Ranking,
    in_digits: bool,
    relative: bool,
    *,
    floor: bool = False,
) -> float | None:
    metrics = evaluation.floor.metrics if floor else evaluation.metrics
    statistics = metrics.get(ranking.metric)
    if statistics is None:
        return None
    size = evaluation.target_size if relative else None
    if in_digits:
        mean = statistics.digits.mean if statistics.digits else None
        return mean if mean is None or not size else mean + math.log10(size)
    if statistics.mean is None or not size:
        return statistics.mean
    is_squared = statistics.digits is not None and statistics.digits.error == "squared"
    return statistics.mean / size ** (2 if is_squared else 1)


def render_shifts(board: Board, style: str = "simple", width: int | None = None) -> str:
    """The matrix as text, in one of tabulate's styles; empty for a board without shifts.

    It is divided into tables of as many models as fit into `width`. Below it stand the reasons why
    a shift does not apply to a model.
    """
    lines = shift_lines(board)
    if not lines:
        return ""
    parts = [f"{board.title} v{board.task_version} · {board.dtype} · under shift"]
    rows = list(range(len(board.rows)))
    while rows:
        count = len(rows)
        table = _table(board.rows, lines, rows, style)
        while width is not None and count > 1 and len(table.splitlines()[0]) > width:
            count -= 1
            table = _table(board.rows, lines, rows[:count], style)
        parts.append(table)
        rows = rows[count:]
    reasons = list(dict.fromkeys(_reasons(board.rows, lines)))
    return "\n\n".join([*parts, *(["\n".join(reasons)] if reasons else [])])


def _table(rows: Sequence[Row], lines: Sequence[Line], chosen: Sequence[int], style: str) -> str:
    shown = [
        [line.shift, line.score, _cell(line.floor), *(_cell(line.cells[i]) for i in chosen)]
        for line in lines
    ]
    headers = ["shift", "score", "floor", *(rows[i].label for i in chosen)]
    align = ["left", "left", *["right"] * (len(headers) - 2)]
    return tabulate(shown, headers=headers, tablefmt=style, colalign=align, disable_numparse=True)


def _cell(value: float | str | None) -> str:
    if isinstance(value, str):
        return "n/a"
    return "" if value is None else f"{value:.4g}"


def _reasons(rows: Sequence[Row], lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        for row, cell in zip(rows, line.cells, strict=True):
            if isinstance(cell, str):
                yield f"{row.label} under {line.shift}: n/a, {cell}"
