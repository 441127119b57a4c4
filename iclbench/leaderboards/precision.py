"""Precision: digits beside the floor's, and how many prompts are solved to how many digits."""

from __future__ import annotations

import math

import numpy as np

from ..api.record import Record
from .tables import Board, Standing

#: The digits k at which the precision profile is taken.
PROFILE = range(17)
#: A row is at the floor when it has at most this many digits less.
NEAR = 0.5


def has_digits(record: Record) -> bool:
    """Whether the task ranks by an error whose digits count."""
    return record.ranking.scale == "log" and record.ranking.better == "lower"


def digits(record: Record) -> float | None:
    """−log10 of the ranked statistic; infinite for 0, None where it is no finite error."""
    if not has_digits(record):
        return None
    found = record.metrics[record.ranking.metric]
    return _digits(getattr(found, record.ranking.statistic))


def floor_digits(record: Record) -> float | None:
    """The same of the floor; None where the task has none."""
    found = record.floor.get(record.ranking.metric)
    if found is None or not has_digits(record):
        return None
    return _digits(getattr(found, record.ranking.statistic))


def missing_digits(record: Record) -> float | None:
    """How many digits fewer than the floor; 0 where there are as many or more."""
    own, floor = digits(record), floor_digits(record)
    if own is None or floor is None:
        return None
    if math.isinf(floor):
        # A reference that computes as the target does is no exact one: ε², the square of rounding.
        floor = -2 * math.log10(np.finfo(record.spec.dtype).eps)
    return 0.0 if own >= floor else floor - own


def is_at_floor(record: Record) -> bool:
    """Whether the model is as precise as the task's own reference, within half a digit."""
    missing = missing_digits(record)
    return missing is not None and missing <= NEAR


def profile(values: np.ndarray) -> tuple[float, ...]:
    """The fraction of (seeds, prompts) values that are solved to at least k digits, k = 0…16."""
    known = np.where(np.isnan(values), np.inf, values)
    return tuple(float((known <= 10.0**-k).mean()) for k in PROFILE)


def by_precision(board: Board) -> list[tuple[str, Standing]]:
    """Ranks and rows by digits; those at the floor share the first, for beyond it is rounding."""
    near = [s for s in board.standings if is_at_floor(s.record)]
    others = [s for s in board.standings if not is_at_floor(s.record)]
    ranks = ["1=" if len(near) > 1 else "1"] * len(near)
    # A tie among the others is the board's own; what it shares with a row at the floor is none.
    numbers: list[int] = []
    for i, standing in enumerate(others):
        same = i > 0 and standing.rank == others[i - 1].rank and standing.rank.endswith("=")
        numbers.append(numbers[-1] if same else len(near) + i + 1)
    ranks += [f"{n}=" if numbers.count(n) > 1 else str(n) for n in numbers]
    return list(zip(ranks, [*near, *others], strict=True))


def _digits(value: float | None) -> float | None:
    if value is None:
        return None
    return math.inf if value <= 0 else -math.log10(value)
