"""Ranking: the order of a board's records, and which of them share a rank.

Records are ordered by their score. Two of them share a rank unless the 95% interval of their paired
difference on the same prompts excludes 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..api.record import Record
from ..runs.statistics import resampled_means

#: Bounds of the errors whose logarithms are compared, so that 0 and ∞ count as very far.
SMALLEST, LARGEST = 1e-40, 1e40

#: Differences below this fraction of the compared values count as 0: they are rounding, which
#: varies between processors and must not decide a rank.
ROUNDING = 1e-12


class Rank(NamedTuple):
    """A rank, and whether several rows share it; written as `3` or `3=`."""

    number: int
    shared: bool = False

    def __str__(self) -> str:
        return f"{self.number}=" if self.shared else str(self.number)


class Difference(NamedTuple):
    """A mean paired difference over prompts, with its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def first_is_lower(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0.0

    @property
    def first_is_higher(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0.0

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.first_is_lower or self.first_is_higher


class Resampled(NamedTuple):
    """A record's mean and its bootstrap, from which it is compared with any other record.

    `first` and `second`, both (resamples,), resample the same prompts but different seeds: compare
    one record's `first` with another's `second`.
    """

    mean: float
    first: np.ndarray
    second: np.ndarray


def best_first(records: Sequence[Record]) -> list[Record]:
    """The comparable records by their score, then by model and id; infinite scores come last."""
    return sorted(records, key=lambda record: (_badness(record), record.spec.model, record.id))


def _badness(record: Record) -> float:
    ranking = record.ranking
    score = getattr(record.metrics[ranking.metric], ranking.statistic)
    if score is None:
        return math.inf
    return float(score) if ranking.better == "lower" else -float(score)


def ranks(values: Sequence[np.ndarray], resampled: Sequence[Resampled], better: str) -> list[Rank]:
    """The ranks of rows ordered best first, from their (seeds, prompts) values and bootstraps.

    A row shares the rank of the row before it unless it is significantly worse than the first row
    of that rank. A row with a value that is not finite shares no rank with one whose values are.
    """
    finite = [bool(np.isfinite(v).all()) for v in values]
    numbers = [1]
    for row in range(1, len(values)):
        first = numbers[-1] - 1
        is_worse = (finite[first] and not finite[row]) or _is_better(
            difference(resampled[first], resampled[row]), better
        )
        numbers.append(row + 1 if is_worse else numbers[-1])
    return _with_shared(numbers)


def _is_better(paired: Difference, better: str) -> bool:
    """Whether the first of two rows is significantly better."""
    return paired.first_is_lower if better == "lower" else paired.first_is_higher


def precision_ranks(ranks: Sequence[Rank], at_floor: Sequence[bool]) -> list[Rank]:
    """The ranks on the precision page, in the same order as `ranks`.

    Rows at the floor share the first rank, because anything beyond the floor is rounding. The
    others follow in their order and share a rank if they share one in `ranks`.
    """
    numbers: list[int] = []
    position = number = sum(at_floor)
    previous = None
    for rank, is_at_floor in zip(ranks, at_floor, strict=True):
        if is_at_floor:
            numbers.append(1)
            continue
        position += 1
        if not (rank.shared and rank == previous):
            number = position
        numbers.append(number)
        previous = rank
    return _with_shared(numbers)


def _with_shared(numbers: list[int]) -> list[Rank]:
    return [Rank(number, numbers.count(number) > 1) for number in numbers]


def resample(values: np.ndarray, log: bool) -> Resampled:
    """The bootstrap of (seeds, prompts) values; with `log`, of their log10."""
    scaled = comparison_scale(values, log)[..., None]
    first = resampled_means(scaled, 0)[:, 0]
    # With one seed, or none, there are no seeds to resample differently.
    second = first if len(values) == 1 else resampled_means(scaled, 1)[:, 0]
    return Resampled(float(scaled.mean()), first, second)


def difference(a: Resampled, b: Resampled) -> Difference:
    """The paired difference a − b."""
    low, high = np.quantile(a.first - b.second, [0.025, 0.975])
    rounding = ROUNDING * max(np.abs(a.first).max(), np.abs(b.second).max())
    numbers = [float(value) for value in (a.mean - b.mean, low, high)]
    if np.isfinite(rounding):
        numbers = [0.0 if abs(value) <= rounding else value for value in numbers]
    return Difference(*numbers)


def paired_difference(first: np.ndarray, second: np.ndarray, log: bool) -> Difference:
    """The difference first − second of (seeds, prompts) values on the same prompts.

    With `log` it is the difference of log10, so that a few bad draws do not dominate it. Both
    records' prompts are resampled together, their seeds separately.
    """
    return difference(resample(first, log), resample(second, log))


def comparison_scale(values: np.ndarray, log: bool) -> np.ndarray:
    """The values as they are compared: with `log` their log10, where NaN counts as very far."""
    if not log:
        return np.asarray(np.nan_to_num(values))
    bounded = np.where(np.isnan(values), LARGEST, np.clip(values, SMALLEST, LARGEST))
    return np.asarray(np.log10(bounded))
