"""A board's scale: 0 at chance and 1 at the reference, which is the floor if there is one.

The two kinds of scale differ on purpose. A suite names the solvers of chance and reference, so its
scores don't change with the rows that a board has. Any other board has only its rows to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..api.record import Record
from ..api.suite import SuiteBoard
from ..runs.suites import records_of_solver
from .board import Board
from .level import has_digits_level, is_lower_better, level_of
from .representative import least_weak
from .row import credible


class Score(NamedTuple):
    """A score, 0 at chance and 1 at the reference, with its 95% interval if there is one."""

    value: float
    low: float | None
    high: float | None

    @property
    def clipped(self) -> Score:
        """The score and its bounds, each at least 0 and at most 1."""
        low, high = (None if b is None else min(1.0, max(0.0, b)) for b in (self.low, self.high))
        return Score(min(1.0, max(0.0, self.value)), low, high)


@dataclass(frozen=True)
class Scale:
    """The values that count as 0 and as 1 on a board; None where no record has them."""

    chance: float | None
    reference: float | None
    #: What the reference is: the floor's name, or the model's. Empty for a board's best row.
    reference_name: str = ""
    #: Whether the values are digits of an error; otherwise they are means of the metric.
    in_digits: bool = False
    #: Whether the reference is the best row, so that further rows may change all scores.
    is_relative: bool = False

    def score(self, record: Record) -> Score | None:
        """The record's score; None where the scale is not known or has no length.

        Chance and reference are taken as known: they have the same prompts. A best row as reference
        was trained, so its own uncertainty is missing in the interval.
        """
        if self.chance is None or self.reference is None:
            return None
        length = self.reference - self.chance
        is_upward = not is_lower_better(record)
        if length == 0 or not math.isfinite(length) or (length > 0) != is_upward:
            return None
        value, *bounds = level_of(record)
        if value is None:
            return Score(0.0, None, None)  # it is not finite, so no better than chance
        scaled = [None if b is None else (b - self.chance) / length for b in bounds]
        low, high = scaled if is_upward else scaled[::-1]
        return Score((value - self.chance) / length, low, high)

    def share(self, record: Record) -> float | None:
        """Where the record lies from chance, 0, to the reference, 1, and not beyond."""
        score = self.score(record)
        return None if score is None else score.clipped.value


def suite_scale(board: SuiteBoard, records: Sequence[Record]) -> Scale:
    """From the solver that the suite names as chance to the floor.

    Without a floor, the reference is the solver that the suite names, or else the best row, if
    several models have rows: a model is not measured by itself.
    """
    of_chance = records_of_solver(board, board.chance, records)
    chance = level_of(of_chance[0]).value if of_chance else None
    in_digits = bool(records) and has_digits_level(records[0])
    for record in records:
        floor = record.floor.get(record.ranking.metric)
        if floor is not None:
            reference = level_of(record, floor).value
            return Scale(chance, reference, record.main.floor.name, in_digits)
    named = records_of_solver(board, board.reference, records) if board.reference else []
    others = [record for record in records if record.spec.model != board.chance]
    if not named and len({record.spec.model for record in others}) == 1:
        return Scale(chance, None, "best row of several models", in_digits, is_relative=True)
    reference, best = _best(named or others)
    if best is None:
        is_relative = bool(records) and not board.reference
        return Scale(chance, None, board.reference or "best row", in_digits, is_relative)
    name = best.spec.model if named else f"best row: {best.spec.model}"
    return Scale(chance, reference, name, in_digits, is_relative=not named)


def board_scale(board: Board) -> Scale:
    """From the best row of chance to the floor.

    Without a row of chance, digits begin at 0. Without a floor, the reference is the best solver
    that does not ignore its input, or else the best row.
    """
    records = tuple(row.record for row in credible(board.rows)) or board.records
    in_digits = has_digits_level(records[0])
    chance, _ = _best(record for record in records if record.chance)
    if chance is None and in_digits:
        chance = 0.0
    if board.floor is not None:
        reference = level_of(records[0], board.floor.statistics).value
        if reference is not None:
            return Scale(chance, reference, board.floor.label, in_digits)
    others = [record for record in records if not record.chance]
    reference, solver = _best(record for record in others if record.spec.origin == "solver")
    if solver is None:
        reference, _ = _best(others)
    return Scale(chance, reference, solver.spec.model if solver else "", in_digits)


def _best(records: Iterable[Record]) -> tuple[float, Record] | tuple[None, None]:
    """The best level, and its record; None where no record has a level.

    A record with one seed stands for its model only where the model has no other: its level may be
    luck.
    """
    known = [(value, record) for record in records if (value := level_of(record).value) is not None]
    kept = least_weak([((record.spec.origin, record.spec.model), record) for _, record in known])
    return max(
        (pair for pair, is_kept in zip(known, kept, strict=True) if is_kept),
        key=lambda pair: -pair[0] if is_lower_better(pair[1]) else pair[0],
        default=(None, None),
    )
