"""The scale of a board: 0 at chance, 1 at the floor, by which cells are colored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..board import Board
from ..level import has_digits_level, is_lower_better, level_of
from ..row import Row


@dataclass(frozen=True)
class BoardScale:
    """What a model that ignores its input scores, and the best that is known; None if unknown."""

    chance: float | None
    best: float | None

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

    Without a row of chance, digits begin at 0. Without a floor, the best row of any origin counts.
    """
    low = _best(row for row in board.rows if row.record.chance)
    first = board.rows[0].record
    if low is None and has_digits_level(first):
        low = 0.0
    if board.floor is not None:
        best = level_of(first, board.floor.statistics).value
        if best is not None:
            return BoardScale(low, best)
    return BoardScale(low, _best(row for row in board.rows if not row.record.chance))


def _best(rows: Iterable[Row]) -> float | None:
    """The best of the rows' levels; None where there is none."""
    known = [(row.record, level_of(row.record).value) for row in rows]
    levels = [
        (-value if is_lower_better(r) else value, value) for r, value in known if value is not None
    ]
    return max(levels)[1] if levels else None
