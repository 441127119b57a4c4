"""The overview: for every task and model the best row, in each dtype."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .tables import Board, Standing


@dataclass(frozen=True)
class Overview:
    """One dtype: a board for each task, and the best standing of each model on it."""

    dtype: str
    boards: tuple[Board, ...]
    models: tuple[str, ...]
    #: (task, model) → the model's best standing there
    best: dict[tuple[str, str], Standing]


def overviews(boards: Iterable[Board]) -> list[Overview]:
    """One overview a dtype, in the order of their names."""
    by_dtype: dict[str, list[Board]] = {}
    for board in boards:
        by_dtype.setdefault(board.records[0].spec.dtype, []).append(board)
    return [_overview(dtype, found) for dtype, found in sorted(by_dtype.items())]


def _overview(dtype: str, boards: list[Board]) -> Overview:
    chosen: dict[str, Board] = {}
    for board in boards:
        task = board.records[0].spec.task
        if task not in chosen or _extent(board) > _extent(chosen[task]):
            chosen[task] = board
    best: dict[tuple[str, str], Standing] = {}
    for task, board in chosen.items():
        for standing in board.standings:
            best.setdefault((task, standing.record.spec.model), standing)
    models = sorted({model for _, model in best})
    return Overview(dtype, tuple(chosen[task] for task in sorted(chosen)), tuple(models), best)


def _extent(board: Board) -> tuple[int, int, int]:
    """A task's newest version first, then the board with the most models, then with most rows."""
    models = {record.spec.model for record in board.records}
    return board.records[0].spec.task_version, len(models), len(board.records)
