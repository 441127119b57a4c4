"""The overview: the best row of every model on every task, for each dtype."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .board import Board
from .row import Row


@dataclass(frozen=True)
class Overview:
    """One dtype: one board per task, in the order of tasks, and each model's best row there."""

    dtype: str
    boards: tuple[Board, ...]
    models: tuple[str, ...]
    #: (task, model) → the model's best row
    best: dict[tuple[str, str], Row]


def overviews(boards: Iterable[Board]) -> list[Overview]:
    """One overview per dtype, ordered by name."""
    by_dtype: dict[str, list[Board]] = {}
    for board in boards:
        by_dtype.setdefault(board.dtype, []).append(board)
    return [_overview(dtype, group) for dtype, group in sorted(by_dtype.items())]


def _overview(dtype: str, boards: list[Board]) -> Overview:
    chosen: dict[str, Board] = {}
    for board in boards:
        if board.task not in chosen or _extent(board) > _extent(chosen[board.task]):
            chosen[board.task] = board
    best: dict[tuple[str, str], Row] = {}
    for task, board in chosen.items():
        for row in board.rows:
            best.setdefault((task, row.record.spec.model), row)
    models = sorted({model for _, model in best})
    return Overview(dtype, tuple(chosen[task] for task in sorted(chosen)), tuple(models), best)


def _extent(board: Board) -> tuple[int, int, int]:
    """Prefers a task's newest version, then the board with most models, then with most rows."""
    models = {record.spec.model for record in board.records}
    return board.task_version, len(models), len(board.rows)
