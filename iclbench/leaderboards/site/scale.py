"""The scale of a board: 0 at chance, 1 at the floor, by which cells are colored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..board import Board
from ..level import has_digits_level, is_lower_better, level_of
from ..row import Row


@dataclass(frozen=True)
class BoardScale:
    """What a model that ignores its input scores, and the reference; None if unknown."""

    chance: float | None
    best: float | None
    #: What the reference is: the floor's name, a solver's, or empty for the best row.
    best_name: str = ""

    def share(self, row: Row) -> float | None:
        """Where the row lies from chance, 0, to the best, 1; None where the scale is unknown."""
        if self.chance is None or self.best is None:
            return None
        level = level_of(row.record).value
        if level is None or row.record.chance:
            return 0.0
        length = self.best - self.chance
        if length == 0 or (length < 0) != is_lower_better(row.record):
            return None
        return min(1.0, max(0.0, (level - self.chance) / length))


def scale_of_board(board: Board) -> BoardScale:
    """From the best row of chance to the floor.

    Without a row of chance, digits begin at 0. Without a floor, the reference is the best solver
    that does not ignore its input, and without one the best row.
    """
    low = _best(row for row in board.rows if row.record.chance)
    first = board.rows[0].record
    if low is None and has_digits_level(first):
        low = 0.0
    if board.floor is not None:
        best = level_of(first, board.floor.statistics).value
        if best is not None:
            return BoardScale(low, best, board.floor.label)
    rows = [row for row in board.rows if not row.record.chance]
    solver = _best_row(row for row in rows if row.origin == "solver")
    if solver is not None:
        return BoardScale(low, level_of(solver.record).value, solver.record.spec.model)
    return BoardScale(low, _best(rows))


def _best(rows: Iterable[Row]) -> float | None:
    """The best of the rows' levels; None where there is none."""
    row = _best_row(rows)
    return None if row is None else level_of(row.record).value


def _best_row(rows: Iterable[Row]) -> Row | None:
    """The row of the best level; None where no row has a level."""
    known = [(row, level_of(row.record).value) for row in rows]
    levels = [
        (-value if is_lower_better(row.record) else value, i)
        for i, (row, value) in enumerate(known)
        if value is not None
    ]
    return known[max(levels)[1]][0] if levels else None
