"""A board's scale: 0 at chance and 1 at the reference, which is the floor if there is one.

The two kinds of scale differ on purpose. A suite names the solvers of chance and reference, so its
scores don't change with the rows that a board has. Any other board has only its rows to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..api.record import Record
from ..api.suite import SuiteBoard
from ..runs.intervals import components
from ..runs.suites import records_of_solver
from .board import Board
from .level import has_digits_level, is_lower_better, level_of, levels_by_prompt
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
    #: The levels of chance and of the reference by prompt, each (prompts,), where they are known.
    by_prompt: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False, repr=False)

    def score(self, record: Record) -> Score | None:
        """The record's score; None where the scale is not known or has no length.

        Its interval is for other prompts too, on which chance and reference have other levels, see
        `half_width`. Without the levels by prompt, the interval is that of the record's level, as
        if chance and reference were the same on all prompts. A best row as reference was trained:
        the uncertainty of its seeds is missing.
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
        score = (value - self.chance) / length
        levels = None if self.by_prompt is None or low is None else levels_by_prompt(record)
        if self.by_prompt is None or levels is None or levels.shape[1] != len(self.by_prompt[0]):
            return Score(score, low, high)
        half = half_width(score, levels, *self.by_prompt)
        if has_digits_level(record) or levels.min() < 0 or low is None or high is None:
            return Score(score, score - half, score + half)
        return skewed_score(score, (low, high), half, -self.chance / length)

    def share(self, record: Record) -> float | None:
        """Where the record lies from chance, 0, to the reference, 1, and not beyond."""
        score = self.score(record)
        return None if score is None else score.clipped.value


def half_width(
    score: float, levels: np.ndarray, chance: np.ndarray, reference: np.ndarray
) -> float:
    """Half the width of the 95% interval of a score, from the levels on each of its prompts.

    `levels` are (seeds, prompts), `chance` and `reference` (prompts,), all finite, two prompts or
    more. The score is a ratio of means over the same prompts. To first order it varies as the mean
    of how far levels are from where the score lies between chance and reference, divided by the
    distance of these two (Cochran 1977, *Sampling Techniques*, chapter 6).
    """
    distances = levels - ((1 - score) * chance + score * reference)
    half = components(distances[:, :, None]).half_width()[0]
    return float(half / abs((reference - chance).mean()))


def skewed_score(score: float, of_level: tuple[float, float], half: float, zero: float) -> Score:
    """The score of levels that are not negative, from half its symmetric width.

    Such means are skewed, and fractions near 0 or 1 may show no spread at all. So the interval
    holds that of the level, too, and it ends at `zero`, the score of a level of 0.
    """
    low, high = min(score - half, of_level[0]), max(score + half, of_level[1])
    return Score(score, max(low, zero), high) if zero <= 0 else Score(score, low, min(high, zero))


def suite_scale(board: SuiteBoard, records: Sequence[Record]) -> Scale:
    """From the solver that the suite names as chance to the floor.

    Without a floor, the reference is the solver that the suite names, or else the best row, if
    several models have rows: a model is not measured by itself.
    """
    of_chance = next(iter(records_of_solver(board, board.chance, records)), None)
    chance = level_of(of_chance).value if of_chance else None
    in_digits = bool(records) and has_digits_level(records[0])
    for record in records:
        floor = record.floor.get(record.ranking.metric)
        if floor is not None:
            reference = level_of(record, floor).value
            known = _by_prompt(of_chance, levels_by_prompt(record, floor=True))
            return Scale(chance, reference, record.main.floor.name, in_digits, by_prompt=known)
    named = records_of_solver(board, board.reference, records) if board.reference else []
    others = [record for record in records if record.spec.model != board.chance]
    if not named and len({record.spec.model for record in others}) == 1:
        return Scale(chance, None, "best row of several models", in_digits, is_relative=True)
    reference, best = _best(named or others)
    if best is None:
        is_relative = bool(records) and not board.reference
        return Scale(chance, None, board.reference or "best row", in_digits, is_relative)
    name = best.spec.model if named else f"best row: {best.spec.model}"
    known = _by_prompt(of_chance, levels_by_prompt(best))
    return Scale(chance, reference, name, in_digits, is_relative=not named, by_prompt=known)


def _by_prompt(
    of_chance: Record | None, reference: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The levels of chance and reference by prompt, each the mean over seeds; None if unknown.

    `reference` is (seeds, prompts).
    """
    chance = None if of_chance is None else levels_by_prompt(of_chance)
    if chance is None or reference is None or not 1 < chance.shape[1] == reference.shape[1]:
        return None
    return chance.mean(axis=0), reference.mean(axis=0)


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
