"""A record's level: the number of which shares between chance and the best known are.

It is what ranks, except for errors without a noise floor whose mean ranks: those span orders of
magnitude, and half of chance's error would be nearly the best. Their level is the digits of that
mean, which order records as the mean does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..api.digits import digits
from ..api.errors import RecordError
from ..api.record import Record
from ..api.statistics import Statistics, finite
from ..runs.prompt_values import floor_values, prompt_values
from .bounds import trusted


class Level(NamedTuple):
    """A level with the bounds of its 95% interval; None for what is not finite or not known.

    Where no interval can be trusted there are no bounds: a range over seeds is none, nor are those
    of a mean that a heavy tail makes unreliable.
    """

    value: float | None
    low: float | None
    high: float | None


def has_digits_level(record: Record) -> bool:
    """Whether the level is the mean digits of an error or the digits of its mean, to maximize."""
    if record.ranking.has_digits:
        return True
    is_error = record.metrics[record.ranking.metric].digits is not None
    return is_error and record.main.floor.kind == "none"


def is_lower_better(record: Record) -> bool:
    """Whether a lower level is better."""
    return record.ranking.better == "lower" and not has_digits_level(record)


def level_of(record: Record, statistics: Statistics | None = None) -> Level:
    """The level of the record's ranked metric, or of these statistics of it, such as a floor's."""
    statistics = statistics or record.metrics[record.ranking.metric]
    reached = statistics.digits
    if not has_digits_level(record):
        low, high = trusted(statistics)
        return Level(statistics.mean, low, high)
    if reached is None:
        return Level(None, None, None)
    if record.ranking.has_digits:
        low, high = trusted(reached)
        return Level(reached.mean, low, high)
    # The largest error has the fewest digits.
    low, high = trusted(statistics)
    errors = (statistics.mean, high, low)
    known = np.array([np.nan if error is None else error for error in errors])
    return Level(*(finite(d) for d in digits(known, reached.error)))


def levels_by_prompt(record: Record, *, floor: bool = False) -> np.ndarray | None:
    """The numbers whose mean is the level, (seeds, prompts); of the floor, (1, prompts).

    None for the digits of a mean, for values that are not finite, and where there are no values: in
    a sparse checkout, for one.
    """
    ranking = record.ranking
    if has_digits_level(record) and not ranking.has_digits:
        return None
    try:
        if floor:
            levels = floor_values(record.path, record, ranking.metric)[None]
        else:
            levels = prompt_values(record.path, record, ranking.metric)
    except (KeyError, RecordError):
        return None
    error = record.metrics[ranking.metric].digits
    if ranking.has_digits and error is not None:
        levels = digits(levels, error.error)
    return levels if np.isfinite(levels).all() else None


def level_name(record: Record) -> str:
    """What the level is, such as `digits of the mean`."""
    is_of_mean = has_digits_level(record) and record.ranking.statistic == "mean"
    return "digits of the mean" if is_of_mean else record.ranking.statistic
