"""Comparing a record's numbers with those measured again, within stated tolerances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..api.scoring import ErrorKind
from ..api.statistics import Curve, Statistics

#: How far a statistic may move, relatively: other machines add in another order.
RELATIVE = {"float32": 1e-3, "float64": 1e-6}
#: A floor is rounding alone if its median is at most this many squares of the dtype's epsilon.
ARITHMETIC = 1e4
#: Then an error of at most this many times the floor is rounding too …
NEAR_FLOOR = 1000.0
#: … and may move by this many digits.
DIGITS = 0.5
#: Mean digits over prompts may move by this much.
MEAN_DIGITS = 0.1


@dataclass(frozen=True)
class Check:
    """One number of a record, the number measured again, and whether they agree."""

    name: str
    recorded: float | None
    measured: float | None
    holds: bool


@dataclass(frozen=True)
class Tolerance:
    """When two values of a metric's statistic agree: relatively, or as rounding near the floor.

    `errors` says which metrics are absolute errors; all others are compared as squared ones.
    """

    dtype: str
    errors: Mapping[str, ErrorKind]

    def holds(
        self,
        metric: str,
        recorded: float | None,
        measured: float | None,
        floor: float | None,
        floor_median: float | None,
    ) -> bool:
        """Whether both values agree, given the floor's value of this statistic and its median."""
        relative = RELATIVE[self.dtype]
        if close(recorded, measured, relative):
            return True
        a, b, c, median = (
            self._as_square(metric, value) for value in (recorded, measured, floor, floor_median)
        )
        return agree(a, b, self.rounding(c, median), relative)

    def rounding(self, floor: float | None, floor_median: float | None) -> float | None:
        """The floor as a squared error, or None unless it is rounding alone.

        A floor may also be that of noise or of too few examples. The result is at least ε²: a
        reference that computes as the target does has no error at all.
        """
        square = float(np.finfo(self.dtype).eps) ** 2
        if floor is None or floor_median is None or floor_median > ARITHMETIC * square:
            return None
        return max(floor, square)

    def _as_square(self, metric: str, value: float | None) -> float | None:
        absolute = self.errors.get(metric) == "absolute"
        return value**2 if value is not None and absolute else value


def agree(
    recorded: float | None, measured: float | None, floor: float | None, relative: float
) -> bool:
    """Whether two squared errors agree relatively, or by DIGITS where both are near the floor."""
    if close(recorded, measured, relative):
        return True
    if recorded is None or measured is None or floor is None:
        return False
    if min(recorded, measured, floor) <= 0:
        return False
    near = max(recorded, measured) <= NEAR_FLOOR * floor
    return near and abs(math.log10(recorded / measured)) <= DIGITS


def close(a: float | None, b: float | None, relative: float) -> bool:
    """Whether two numbers differ relatively by at most `relative`; None equals only None."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= relative * max(abs(a), abs(b))


def same_statistics(a: Statistics, b: Statistics) -> bool:
    """Whether both summarize the same values, up to the last bits."""
    first, second = a.numbers(), b.numbers()
    return _intervals(a) == _intervals(b) and all(
        close(value, second.get(name), 1e-9) for name, value in first.items()
    )


def _intervals(statistics: Statistics) -> tuple[Any, ...]:
    """What the bounds are, and whether they can be trusted."""
    digits = statistics.digits
    return statistics.interval, statistics.reliable, digits and (digits.interval, digits.error)


def compare_statistics(
    label: str,
    recorded: Mapping[str, Statistics],
    measured: Mapping[str, Statistics],
    floor: Mapping[str, Statistics],
    tolerance: Tolerance,
) -> Iterator[Check]:
    """A check for every statistic of every metric; one that fails if the metrics differ."""
    if set(recorded) != set(measured):
        yield Check(f"{label}metrics", len(recorded), len(measured), False)
        return
    for metric, statistics in recorded.items():
        bottom, again = floor.get(metric), measured[metric].numbers()
        for name, a in statistics.numbers().items():
            b = again.get(name)
            if name.startswith("digits"):
                holds = close(a, b, RELATIVE[tolerance.dtype]) or (
                    a is not None and b is not None and abs(a - b) <= MEAN_DIGITS
                )
            else:
                c = None if bottom is None else getattr(bottom, _floor_statistic(name))
                median = None if bottom is None else bottom.median
                holds = tolerance.holds(metric, a, b, c, median)
            yield Check(f"{label}{metric} {name}", a, b, holds)


def _floor_statistic(name: str) -> str:
    # The interval is the mean's, and the floor's low quantiles are too small to measure by.
    return "mean" if name in {"mean", "low", "high", "q95", "q99", "max"} else "median"


def compare_curves(
    label: str,
    recorded: Mapping[str, Curve],
    measured: Mapping[str, Curve],
    floor: Mapping[str, Curve],
    tolerance: Tolerance,
) -> Iterator[Check]:
    """A check for every point of every recorded curve."""
    for metric, curve in recorded.items():
        if metric not in measured or curve.values != measured[metric].values:
            yield Check(f"{label}{metric} curve", len(curve.values), None, False)
            continue
        unknown: list[float | None] = [None] * len(curve.values)
        for name in ("mean", "median", "max"):
            bottom = floor.get(metric)
            rows = zip(
                curve.values,
                getattr(curve, name),
                getattr(measured[metric], name),
                unknown if bottom is None else getattr(bottom, name),
                unknown if bottom is None else bottom.median,
                strict=True,
            )
            for x, a, b, c, median in rows:
                holds = tolerance.holds(metric, a, b, c, median)
                yield Check(f"{label}{metric} {name} at {x:g}", a, b, holds)


def compare_analyses(
    recorded: Mapping[str, Any], measured: Mapping[str, Any], dtype: str
) -> Iterator[Check]:
    """A check for every number of the analyses, which are JSON documents.

    A number in a list is compared relative to the largest of the list, or may differ by 100ε. A
    single number may differ by 10⁴ε², as squared errors do.
    """
    relative = RELATIVE[dtype]
    eps = float(np.finfo(dtype).eps)
    before, now = dict(_numbers("", recorded)), dict(_numbers("", measured))
    for path in sorted({*before, *now}):
        (a, scale), (b, _) = before.get(path, (None, 0.0)), now.get(path, (None, 0.0))
        holds = path in before and path in now and a is b is None
        if a is not None and b is not None:
            rounding = 100 * eps if scale else ARITHMETIC * eps**2
            holds = abs(a - b) <= max(relative * max(abs(a), abs(b), scale), rounding)
        yield Check(f"analysis{path}", a, b, holds)


def _numbers(
    path: str, content: Any, scale: float = 0.0
) -> Iterator[tuple[str, tuple[float | None, float]]]:
    """Every number or null of a JSON document by its path, with the largest size in its list."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(f"{path} {key}", value)
    elif isinstance(content, list):
        largest = max((abs(v) for v in content if isinstance(v, int | float)), default=0.0)
        for index, value in enumerate(content):
            yield from _numbers(f"{path} {index}", value, largest)
    elif content is None or isinstance(content, int | float):
        yield path, (content, scale)
