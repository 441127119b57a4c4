"""Magnitudes of values: which an axis can show, and whether only a logarithmic one does."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...api.record import Record

#: The largest value over the smallest above which an axis is logarithmic: one of scores, which
#: must show a zero too, and one of curves and settings.
RATIO, RATIO_OF_CURVES = 100.0, 30.0
#: The largest magnitude that an axis shows; the smallest of a logarithmic one is its inverse.
LARGEST = 1e200


def is_error(record: Record) -> bool:
    """Whether the metric that ranks is an error, of which a logarithm has a meaning."""
    return record.metrics[record.ranking.metric].digits is not None


def finite_value(value: float | None) -> float | None:
    """The value; None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def can_show(value: float | None, log: bool) -> bool:
    """Whether an axis can show a value: beyond these magnitudes its arithmetic would overflow."""
    return value is not None and abs(value) <= LARGEST and (not log or value >= 1 / LARGEST)


def extent(values: Iterable[float | None], log: bool) -> tuple[float, float] | None:
    """The smallest and largest value that an axis can show, or None."""
    known = [v for v in values if v is not None and can_show(v, log)]
    return (min(known), max(known)) if known else None


def spans_magnitudes(values: Iterable[float | None], ratio: float = RATIO) -> bool:
    """Whether the values are above 0, and the largest over `ratio` times the smallest."""
    low, high = extent(values, log=False) or (0.0, 0.0)
    return can_show(low, log=True) and high > ratio * low
