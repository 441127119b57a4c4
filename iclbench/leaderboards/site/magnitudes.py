"""Magnitudes of values: which are finite, and whether only a logarithmic axis shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...api.record import Record

#: The largest value over the smallest from which an axis is logarithmic.
RATIO = 100.0


def is_error(record: Record) -> bool:
    """Whether the metric that ranks is an error, of which a logarithm has a meaning."""
    return record.metrics[record.ranking.metric].digits is not None


def finite_value(value: float | None) -> float | None:
    """The value; None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def spans_magnitudes(values: Iterable[float | None]) -> bool:
    """Whether all known values are above 0, and the largest over RATIO times the smallest."""
    known = [v for v in map(finite_value, values) if v is not None]
    return bool(known) and min(known) > 0 and max(known) > RATIO * min(known)
