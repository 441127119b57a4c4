"""The bounds of what ranks, and the marks that say what they are worth."""

from __future__ import annotations

from typing import NamedTuple

from ..api.ranking import Ranking
from ..api.statistics import Digits, IntervalKind, Statistics

#: Marks of an interval: for one seed, in place of a 95% interval, and where few values decide it.
ONE_SEED, RANGE, UNRELIABLE = "†", "‡", "~"


class Bounds(NamedTuple):
    """The bounds of a mean, of which kind they are, and whether a 95% interval can be trusted."""

    low: float | None
    high: float | None
    kind: IntervalKind | None
    reliable: bool


def bounds_of(statistics: Statistics, ranking: Ranking) -> Bounds:
    """The bounds of the statistic that ranks."""
    if not ranking.has_digits:
        return mean_bounds(statistics)
    return digits_bounds(statistics.digits)


def digits_bounds(digits: Digits | None) -> Bounds:
    """The bounds of mean digits."""
    if digits is None:
        return Bounds(None, None, None, False)
    reliable = digits.interval not in {None, "range over seeds"}
    return Bounds(digits.low, digits.high, digits.interval, reliable)


def mean_bounds(statistics: Statistics) -> Bounds:
    """The bounds of the metric's mean."""
    return Bounds(statistics.low, statistics.high, statistics.interval, statistics.reliable)


def trusted(measured: Statistics | Digits) -> tuple[float | None, float | None]:
    """The bounds of a mean where they are a 95% interval that can be trusted; otherwise none."""
    bounds = mean_bounds(measured) if isinstance(measured, Statistics) else digits_bounds(measured)
    return (bounds.low, bounds.high) if bounds.reliable else (None, None)


def bounds_mark(bounds: Bounds, seeds: int) -> str:
    """The marks of an interval of so many seeds; empty for a 95% interval that can be trusted."""
    if bounds.kind is None:
        return ""
    if bounds.kind == "range over seeds":
        return RANGE
    one_seed = ONE_SEED if seeds == 1 and bounds.kind == "prompts" else ""
    return one_seed + ("" if bounds.reliable else UNRELIABLE)
