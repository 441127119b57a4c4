"""The scale of a board: 0 at chance, 1 at the floor, by which cells are colored."""

from __future__ import annotations

from dataclasses import dataclass

from ..board import Board
from ..row import Row, better


@dataclass(frozen=True)
class BoardScale:
    """What a model that ignores its input scores, and the best that is known; None if unknown."""

    chance: float | None
    best: float | None

    def share(self, row: Row) -> float | None:
        """Where the row lies from chance, 0, to the best, 1; None where the scale is unknown."""
        if self.chance is None or self.best is None:
            return None
        if row.score is None or row.record.chance:
            return 0.0
        length = self.best - self.chance
        if length == 0 or (length > 0) != (better(row.record.ranking) == "higher"):
            return None
        return min(1.0, max(0.0, (row.score - self.chance) / length))


def scale_of_board(board: Board) -> BoardScale:
    """From the best row of chance to the floor.

    Without a row of chance, digits begin at 0. Without a floor, the best row of any origin counts.
    """
    scored = [row for row in board.rows if row.score is not None]
    by_chance = [row for row in scored if row.record.chance]
    low = max(by_chance, key=lambda row: row.goodness).score if by_chance else None
    if low is None and board.has_digits:
        low = 0.0
    if board.floor is not None and board.floor.score is not None:
        return BoardScale(low, board.floor.score)
    others = [row for row in scored if not row.record.chance]
    return BoardScale(low, max(others, key=lambda row: row.goodness).score if others else None)
