"""The overview: every model's best row on every task, for each dtype and origin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .board import Board
from .row import Row


class Line(NamedTuple):
    """A line of the overview: a model with weights of one origin."""

    origin: str
    model: str


@dataclass(frozen=True)
class Overview:
    """One dtype: one board per title, in the order of titles, and each line's best row there.

    The lines of trained models come first.
    """

    dtype: str
    boards: tuple[Board, ...]
    lines: tuple[Line, ...]
    #: (title, line) → the line's best row
    best: dict[tuple[str, Line], Row]

    def rows(self, line: Line) -> list[Row]:
        """The rows of a line, on the boards that have one."""
        keys = [(board.title, line) for board in self.boards]
        return [self.best[key] for key in keys if key in self.best]


def overviews(boards: Iterable[Board]) -> list[Overview]:
    """One overview per dtype, ordered by name."""
    by_dtype: dict[str, list[Board]] = {}
    for board in boards:
        by_dtype.setdefault(board.dtype, []).append(board)
    return [_overview(dtype, group) for dtype, group in sorted(by_dtype.items())]


def _overview(dtype: str, boards: list[Board]) -> Overview:
    chosen: dict[str, Board] = {}
    for board in boards:
        if board.title not in chosen or _extent(board) > _extent(chosen[board.title]):
            chosen[board.title] = board
    best: dict[tuple[str, Line], Row] = {}
    for title, board in chosen.items():
        for row in board.rows:
            key = (title, Line(row.origin, row.record.spec.model))
            if key not in best or row.goodness > best[key].goodness:
                best[key] = row
    lines = sorted({line for _, line in best}, key=lambda line: (line.origin != "trained", line))
    return Overview(dtype, tuple(chosen[title] for title in sorted(chosen)), tuple(lines), best)


def _extent(board: Board) -> tuple[int, int, int]:
    """Prefers a task's newest version, then the board with most models, then with most rows."""
    models = {record.spec.model for record in board.records}
    return board.task_version, len(models), len(board.rows)
