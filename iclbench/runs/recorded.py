"""An evaluation as a record holds it, against its own values and against those measured again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..api.errors import RecordError
from ..api.results import Evaluation
from ..api.scoring import Axis
from ..api.statistics import Curve, Statistics
from .comparison import (
    DIGITS,
    INEXACT,
    Check,
    compare_curves,
    compare_statistics,
    same,
    same_statistics,
)
from .first_answers import as_array
from .measure import Measured
from .plan import Plan
from .rounding import ANSWERS, FACTOR, spread
from .statistics import Summary, summarize_run
from .store import read_values
from .values import MEAN_DIGITS_NAME, Arithmetic, compare_answers, compare_values

#: What a statistic may gain by rounding although no draw gained as much, for the draws are few: of
#: a metric and of an error relatively, of digits as such.
GAIN, GAIN_OF_ERRORS, GAIN_OF_DIGITS = 3e-3, 0.1, 0.02
#: How far rounding may move the mean and the median of what ranks, relatively, if it is a metric,
#: and if it is an error: weights can be made that it moves without limit. Mean digits have DIGITS.
MOST, MOST_OF_ERRORS = 0.05, 0.5
#: The facts of a statistic that are words, by the ends of their names.
WORDS = (" reliable", " interval")


@dataclass(frozen=True)
class Recorded:
    """An evaluation of the record in `path`. Checks of it have names that start with `prefix`."""

    path: Path
    prefix: str
    evaluation: Evaluation
    seeds: Sequence[int | None]

    @cached_property
    def values(self) -> dict[str, np.ndarray]:
        """Metric → its value for every seed and prompt; raises RecordError, as below."""
        return read_values(self.path, self.evaluation.values)

    @cached_property
    def floor_values(self) -> dict[str, np.ndarray]:
        """Metric → the floor's value for every prompt; raises RecordError for a damaged file."""
        return read_values(self.path, self.evaluation.floor.values)

    def require_consistent(self, plan: Plan, axes: Mapping[str, Axis]) -> None:
        """Raise RecordError for statistics and curves that don't follow from the values."""
        evaluation, floor = self.evaluation, self.evaluation.floor
        ragged = [n for n, array in self.values.items() if len(array) != len(evaluation.seeds)]
        if ragged:
            raise RecordError(f"the values of {ragged[0]} are not those of its seeds")
        implied = summarize_run(self.values, self.floor_values, axes, plan.kinds)
        pairs: list[tuple[Mapping[str, Statistics | Curve], Mapping[str, Statistics | Curve]]] = [
            (evaluation.metrics, implied.metrics),
            (floor.metrics, implied.floor),
            (evaluation.curves, implied.curves),
            (floor.curves, implied.floor_curves),
            *zip(evaluation.seeds, implied.seeds, strict=True),
        ]
        for recorded, summarized in pairs:
            for name in {**recorded, **summarized}:
                known = name in recorded and name in summarized
                if not known or not same_statistics(recorded[name], summarized[name]):
                    what = f"its statistics of {self.prefix}{name}"
                    raise RecordError(f"{what} do not follow from its stored values")

    def compare(
        self,
        plan: Plan,
        axes: Mapping[str, Axis],
        measured: Measured,
        rounded: Callable[[], list[Measured]],
    ) -> list[Check]:
        """A check for the floor, every value, every statistic and every point of a curve.

        Where one differs, `rounded` measures how far rounding alone moves them, and what it moves
        as far may differ.
        """
        checks = self._compare(plan, axes, measured)
        # Answers in text are not rounded.
        if all(check.holds for check in checks) or plan.spec.origin == "asked":
            return checks
        # Grades are not given again: those of the record take part in every comparison.
        others = [
            other._replace(
                values={**measured.values, **other.values},
                floor_values={**measured.floor_values, **other.floor_values},
            )
            for other in rounded()
        ]
        moved = [
            {check.name: check.measured for check in self._compare(plan, axes, other)}
            for other in others
        ]
        checks = self._compare(plan, axes, measured, spread(measured, others))
        limits = _limits(plan, self.prefix)
        return [
            _within(
                check, [facts.get(check.name) for facts in moved], limits.get(check.name, _Limit())
            )
            for check in checks
        ]

    def _compare(
        self,
        plan: Plan,
        axes: Mapping[str, Axis],
        measured: Measured,
        moves: Mapping[str, np.ndarray] | None = None,
    ) -> list[Check]:
        errors, floor, prefix = plan.task.errors, self.evaluation.floor, self.prefix
        arithmetic = Arithmetic(
            plan.spec.dtype, errors, measured.target_size, measured.floor_values
        )
        summary = summarize_run(measured.values, measured.floor_values, axes, plan.kinds)
        kind = plan.task.floor_kind if measured.floor_values else "none"
        rows = max((len(array) for array in measured.floor_values.values()), default=0)
        floors = _as_seed(self.floor_values), _as_seed(measured.floor_values)
        return [
            same(f"{prefix}floor kind", floor.kind, kind),
            same(f"{prefix}floor prompts", floor.prompts, rows),
            *compare_values(prefix, self.values, measured.values, arithmetic, moves),
            *compare_values(f"{prefix}floor ", *floors, arithmetic),
            *self._compare_answers(measured, arithmetic, moves),
            *self._compare_summary(summary, arithmetic),
        ]

    def _compare_answers(
        self, now: Measured, arithmetic: Arithmetic, moves: Mapping[str, np.ndarray] | None
    ) -> list[Check]:
        """A check of the answers, which older records lack."""
        if self.evaluation.answers is None:
            return []
        recorded, spread = as_array(self.evaluation.answers), (moves or {}).get(ANSWERS, 0.0)
        name = f"{self.prefix}{ANSWERS}"
        return [compare_answers(name, recorded, now.answers, arithmetic, spread)]

    def _compare_summary(self, now: Summary, arithmetic: Arithmetic) -> list[Check]:
        recorded, floor, prefix = self.evaluation, self.evaluation.floor, self.prefix
        tolerance = arithmetic.tolerance()
        of_floor = replace(tolerance, further=0.0 if floor.kind == "exact" else INEXACT)
        checks = [
            *compare_statistics(prefix, recorded.metrics, now.metrics, tolerance),
            *compare_curves(prefix, recorded.curves, now.curves, tolerance),
            *compare_curves(f"{prefix}floor ", floor.curves, now.floor_curves, of_floor),
            *compare_statistics(f"{prefix}floor ", floor.metrics, now.floor, of_floor),
        ]
        for seed, metrics, again in zip(self.seeds, recorded.seeds, now.seeds, strict=True):
            checks += compare_statistics(f"{prefix}seed {seed} ", metrics, again, tolerance)
        return checks


@dataclass(frozen=True)
class _Limit:
    """How far rounding may move a statistic.

    `gain` is by how much it may be better although no draw was, in the direction of `sign`, and
    `most` how far it may move at all, relatively.
    """

    sign: float = 0.0
    gain: float = 0.0
    is_relative: bool = True
    most: float = math.inf


def _limits(plan: Plan, prefix: str) -> dict[str, _Limit]:
    """Of the statistics over all seeds and prompts that say how good a model is, by their names."""
    primary, errors = plan.task.primary, plan.task.errors
    limits = {}
    for metric in {*errors, primary.metric}:
        if metric in errors:
            is_ranked = metric == primary.metric and plan.task.statistic == "mean"
            most = MOST_OF_ERRORS if is_ranked else math.inf
            limit = _Limit(-1.0, GAIN_OF_ERRORS, True, most)
            for name in ("digits mean", "digits median", MEAN_DIGITS_NAME):
                limits[f"{prefix}{metric} {name}"] = _Limit(1.0, GAIN_OF_DIGITS, False)
        else:
            sign = {"lower": -1.0, "higher": 1.0}[primary.better]
            limit = _Limit(sign, GAIN, True, MOST)
        limits |= {f"{prefix}{metric} {name}": limit for name in ("mean", "median")}
    return limits


def _within(check: Check, moved: Sequence[Any], limit: _Limit) -> Check:
    """The check of a number, which holds too if rounding moves the number as far.

    Rounding moves good numbers in both directions. Weights may be made so that it only spoils them:
    a better number than those measured needs draws that are better, too. What a statistic says of
    its interval in words follows from its values, and holds where they do.
    """
    if check.name.endswith(WORDS):
        return replace(check, holds=True)
    numbers = (check.recorded, check.measured, *moved)
    if check.holds or not all(isinstance(value, float) for value in numbers):
        return check
    size = max(abs(check.recorded), abs(check.measured))
    most = FACTOR * max(abs(value - check.measured) for value in moved)
    if math.isfinite(limit.most):
        most = min(most, limit.most * size)
    if check.name.endswith(MEAN_DIGITS_NAME):
        # However far rounding moves single errors, dividing all of them by two is no rounding.
        most = min(most, DIGITS)
    if limit.sign * (check.recorded - check.measured) > 0:
        gained = max(limit.sign * (value - check.measured) for value in moved)
        gain = limit.gain * size if limit.is_relative else limit.gain
        most = min(most, max(FACTOR * gained, gain))
    return replace(check, holds=abs(check.recorded - check.measured) <= most)


def _as_seed(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: array[None] for name, array in values.items()}
