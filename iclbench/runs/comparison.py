"""Comparing a record's numbers with those measured again, within stated tolerances."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..api.digits import ErrorKind
from ..api.names import is_number, visible
from ..api.statistics import Curve, Statistics

#: No record has this schema and is older.
EARLIEST = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
#: How far a number may move, relatively: other machines add in another order.
RELATIVE = {"float32": 1e-3, "float64": 1e-6}
#: A floor that is no exact answer may be badly conditioned: its statistics may move by this much,
#: relatively, and its digits by as many.
INEXACT = 1e-2
#: Below this a metric that is no error, such as a squared distance, is 0 up to rounding in float64.
NEGLIGIBLE = 3e-27
#: A floor is rounding alone if its median is at most this many squares of the dtype's epsilon.
ARITHMETIC = 1e4
#: Then an absolute error of at most this many times the floor is rounding too …
NEAR_FLOOR = 1000.0
#: … and a statistic of it may move by this many digits.
DIGITS = 0.25
#: Mean digits, which average over prompts, may move by this much there.
MEAN_DIGITS = 0.1
#: Above NEAR_FLOOR floors, a statistic may move by as many floors as a prompt's error may.
ROUNDING = 10.0


@dataclass(frozen=True)
class Check:
    """One fact of a record, the same fact computed now, and whether they agree."""

    name: str
    recorded: Any
    measured: Any
    holds: bool

    @property
    def difference(self) -> str:
        """The fact and both values on one line."""
        parts = self.recorded, self.measured
        if not self.holds:
            parts = _apart(*parts), _apart(*reversed(parts))
        recorded, measured = map(_shown, parts)
        return f"{self.name}: recorded {recorded}, computed {measured}"


def _apart(value: Any, other: Any) -> Any:
    """What a mapping has otherwise than another; any other value as it is."""
    if not isinstance(value, dict) or not isinstance(other, dict):
        return value
    # As for facts, 4 and 4.0 differ.
    return {k: v for k, v in value.items() if k not in other or repr(other[k]) != repr(v)}


def _shown(value: Any) -> str:
    """A number with six digits, anything else as short JSON."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return visible(text if len(text) <= 80 else f"{text[:77]}...")


def same(name: str, recorded: Any, computed: Any) -> Check:
    """The check of a fact that must be equal, in type too: 4.0 for 4 would be another run."""
    return Check(name, recorded, computed, _plain(recorded) == _plain(computed))


def _plain(content: Any) -> Any:
    """Content whose equality is that of its JSON, where it has one."""
    if isinstance(content, bool | int | float):
        return type(content), content
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return content


def of_the_past(name: str, text: str) -> Check:
    """The check of a date since EARLIEST that is over; clocks may differ by an hour."""
    try:
        date = datetime.datetime.fromisoformat(text)
    except ValueError:
        return Check(name, text, "no date", False)
    now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    holds = date.tzinfo is not None and EARLIEST <= date <= now
    return Check(name, text, "a date of the past" if holds else "not in the past", holds)


@dataclass(frozen=True)
class Tolerance:
    """When two values of a metric's statistic agree: relatively, or as rounding near the floor.

    `errors` says which metrics are errors, and whether they are squared; `floor` holds their
    absolute errors at the floor, a median for each value of the second axis. They are NaN where
    the floor is more than rounding.
    """

    dtype: str
    errors: Mapping[str, ErrorKind]
    floor: Mapping[str, np.ndarray]
    #: What further difference is allowed, relatively, and in digits.
    further: float = 0.0

    @property
    def relative(self) -> float:
        """How far a number may move, relatively."""
        return max(RELATIVE[self.dtype], self.further)

    def holds_digits(self, metric: str, recorded: Any, measured: Any) -> bool:
        """Whether digits of the metric agree: to MEAN_DIGITS where both are near the floor's."""
        if not (is_number(recorded) and is_number(measured)):
            return bool(recorded == measured)
        if close(recorded, measured, RELATIVE[self.dtype]):
            return True
        if abs(recorded - measured) <= self.further:
            return True
        if metric not in self.floor:
            return False
        attainable = -math.log10(np.nanmax(self.floor[metric]) or np.finfo(np.float64).tiny)
        is_near = min(recorded, measured) >= attainable - math.log10(NEAR_FLOOR)
        return bool(is_near and abs(recorded - measured) <= MEAN_DIGITS)

    def holds(self, metric: str, recorded: Any, measured: Any, position: int | None = None) -> bool:
        """Whether both values agree; `position` is that on the metric's second axis."""
        if not (is_number(recorded) and is_number(measured)):
            return bool(recorded == measured)
        if close(recorded, measured, self.relative):
            return True
        kind = self.errors.get(metric)
        if kind is None and max(abs(recorded), abs(measured)) <= NEGLIGIBLE:
            return True
        if kind is None or metric not in self.floor:
            return False
        medians = np.atleast_1d(self.floor[metric])
        floor = float(np.nanmax(medians) if position is None else medians[position])
        return agree(absolute(recorded, kind), absolute(measured, kind), floor)


def agree(recorded: float, measured: float, floor: float) -> bool:
    """Whether two absolute errors differ by rounding.

    Near the floor they do if they are at most DIGITS apart, and above if ROUNDING floors.
    """
    if not min(recorded, measured) > 0 or not floor > 0:
        return False
    if max(recorded, measured) > NEAR_FLOOR * floor:
        return abs(recorded - measured) <= ROUNDING * floor
    return abs(math.log10(recorded / measured)) <= DIGITS


def absolute(value: Any, kind: str) -> Any:
    """The absolute error of a squared or an absolute one."""
    return np.sqrt(np.maximum(value, 0.0)) if kind == "squared" else value


def close(a: float | None, b: float | None, relative: float) -> bool:
    """Whether two numbers differ relatively by at most `relative`; None equals only None."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= relative * max(abs(a), abs(b))


def facts_of(content: Statistics | Curve) -> dict[str, Any]:
    """Every number, text and null of a statistic or a curve by its name, such as `digits mean`."""
    return dict(_leaves("", content.model_dump(mode="json")))


def _leaves(name: str, content: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _leaves(f"{name} {key}".strip(), value)
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from _leaves(f"{name} {index}", value)
    else:
        yield name, content


def same_statistics(a: Statistics | Curve, b: Statistics | Curve) -> bool:
    """Whether both summarize the same values, up to the last bits."""
    first, second = facts_of(a), facts_of(b)
    return set(first) == set(second) and all(
        close(first[name], second[name], 1e-9)
        if is_number(first[name]) and is_number(second[name])
        else first[name] == second[name]
        for name in first
    )


def compare_statistics(
    label: str,
    recorded: Mapping[str, Statistics],
    measured: Mapping[str, Statistics],
    tolerance: Tolerance,
) -> Iterator[Check]:
    """A check for every statistic of every metric; one that fails if the metrics differ."""
    if set(recorded) != set(measured):
        yield same(f"{label}metrics", sorted(recorded), sorted(measured))
        return
    for metric, statistics in recorded.items():
        now = facts_of(measured[metric])
        for name, value in facts_of(statistics).items():
            agree_on = tolerance.holds_digits if name.startswith("digits ") else tolerance.holds
            holds = name in now and agree_on(metric, value, now[name])
            yield Check(f"{label}{metric} {name}", value, now.get(name), holds)


def compare_curves(
    label: str,
    recorded: Mapping[str, Curve],
    measured: Mapping[str, Curve],
    tolerance: Tolerance,
) -> Iterator[Check]:
    """A check for the axis and every point of every curve; one that fails if curves differ."""
    if set(recorded) != set(measured):
        yield same(f"{label}curves", sorted(recorded), sorted(measured))
        return
    for metric, curve in recorded.items():
        now = measured[metric]
        axis = same(f"{label}{metric} axis", [curve.axis, *curve.values], [now.axis, *now.values])
        yield axis
        if not axis.holds:
            continue
        for name in ("mean", "median", "max"):
            points = zip(curve.values, getattr(curve, name), getattr(now, name), strict=True)
            for position, (x, a, b) in enumerate(points):
                holds = tolerance.holds(metric, a, b, position)
                yield Check(f"{label}{metric} {name} at {x:g}", a, b, holds)


def compare_analyses(
    recorded: Mapping[str, Any], measured: Mapping[str, Any], dtype: str
) -> Iterator[Check]:
    """A check for every number of the analyses, which are JSON documents, and for all else in them.

    A number in a list is compared relative to the largest of the list, or may differ by 100ε. A
    single number may differ by 10⁴ε², as squared errors do.
    """
    forms = _without_numbers(recorded), _without_numbers(measured)
    yield same("analyses without their numbers", *forms)
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


def _without_numbers(content: Any) -> Any:
    """The document with 0 in place of every number and null."""
    if isinstance(content, Mapping):
        return {key: _without_numbers(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_without_numbers(value) for value in content]
    return 0 if content is None or is_number(content) else content


def _numbers(
    path: str, content: Any, scale: float = 0.0
) -> Iterator[tuple[str, tuple[float | None, float]]]:
    """Every number or null of a JSON document by its path, with the largest size in its list."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _numbers(f"{path} {key}", value)
    elif isinstance(content, list):
        largest = max((abs(v) for v in content if is_number(v)), default=0.0)
        for index, value in enumerate(content):
            yield from _numbers(f"{path} {index}", value, largest)
    elif content is None or is_number(content):
        yield path, (content, scale)
