"""The statistics of a record: over seeds and prompts, with the intervals of their means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..api.digits import ErrorKind, MetricKind, digits
from ..api.statistics import Curve, Digits, Statistics, finite
from .intervals import Quantity, mean_interval

if TYPE_CHECKING:
    from ..api.scoring import Axis


QUANTILES = {
    "q01": 0.01,
    "q05": 0.05,
    "q25": 0.25,
    "median": 0.5,
    "q75": 0.75,
    "q95": 0.95,
    "q99": 0.99,
    "max": 1.0,
}

#: Values of one metric: (seeds, prompts), or (seeds, prompts, axis).
Values = np.ndarray

#: The significant bits of a value that a record keeps, those of float32. The others are rounding,
#: which no compression makes smaller.
SIGNIFICANT_BITS = 24

#: The names of metrics made from a grader's scores begin with this.
GRADE = "grade_"


def as_kept(values: Values) -> Values:
    """The values as a record keeps them: float64 with `SIGNIFICANT_BITS`, NaN and ∞ as they are."""
    mantissas, exponents = np.frexp(values)
    whole = np.rint(np.ldexp(mantissas, SIGNIFICANT_BITS))
    return np.asarray(np.ldexp(whole, exponents - SIGNIFICANT_BITS))


class Summary(NamedTuple):
    """All the statistics of a run: pooled, for each seed in order, of the floor, and curves."""

    metrics: dict[str, Statistics]
    seeds: list[dict[str, Statistics]]
    floor: dict[str, Statistics]
    curves: dict[str, Curve]
    floor_curves: dict[str, Curve]


def summarize_run(
    values: Mapping[str, Values],
    floor_values: Mapping[str, np.ndarray],
    axes: Mapping[str, Axis],
    kinds: Mapping[str, MetricKind],
) -> Summary:
    """Summarize metrics (seeds, prompts[, axis]) and those of the floor (prompts[, axis]).

    A metric that `axes` names has a curve as well, and one that `kinds` calls an error has digits.
    """
    floors = {name: v[None] for name, v in floor_values.items()}

    def summaries(metrics: Mapping[str, Values]) -> dict[str, Statistics]:
        return {name: summarize(graded(name, v), kinds.get(name)) for name, v in metrics.items()}

    def curves(metrics: Mapping[str, Values]) -> dict[str, Curve]:
        return {n: curve(metrics[n], a, kinds.get(n)) for n, a in axes.items() if n in metrics}

    pooled = summaries(values)
    seeds = len(next(iter(values.values())))
    return Summary(
        metrics=pooled,
        seeds=[pooled]
        if seeds == 1
        else [summaries({n: v[i : i + 1] for n, v in values.items()}) for i in range(seeds)],
        floor=summaries(floors),
        curves=curves(values),
        floor_curves=curves(floors),
    )


def graded(name: str, values: Values) -> Values:
    """The values of a metric. For a grade, only the prompts that were graded for every seed.

    A grade that is NaN could not be obtained, which says nothing about the model. NaN of
    any other metric counts: see `_nan_as_worst`.
    """
    if not name.startswith(GRADE):
        return values
    return values[:, ~np.isnan(values).any(axis=(0, *range(2, values.ndim)))]


def by_prompt(values: Values) -> Values:
    """The values as (seeds, prompts): a second axis is averaged for each prompt."""
    return np.asarray(values.mean(axis=2) if values.ndim == 3 else values)


def summarize(values: Values, kind: MetricKind | None = None) -> Statistics:
    """The statistics of (seeds, prompts[, axis]) values; an axis is averaged for each prompt.

    Errors, of the given kind, have digits.
    """
    values = by_prompt(values)
    error = None if kind == "fraction" else kind
    if values.size == 0:
        numbers = dict.fromkeys(("mean", *QUANTILES, "low", "high", "interval"))
        return Statistics(**numbers, reliable=False, n=0)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = values.mean()
    interval = mean_interval(values[..., None], _quantity(kind))
    return Statistics(
        mean=finite(mean),
        low=finite(interval.low[0]),
        high=finite(interval.high[0]),
        interval=interval.kind[0],
        reliable=bool(interval.reliable[0]),
        n=values.shape[1],
        digits=mean_digits(digits(values, error), error) if error else None,
        **dict(zip(QUANTILES, quantiles(_nan_as_worst(values, kind)), strict=True)),
    )


def quantiles(values: Values) -> list[float | None]:
    """The quantiles of `QUANTILES`, linear between values; None for those that are not finite."""
    if np.isnan(values).any():
        return [None] * len(QUANTILES)
    ordered = np.sort(values, axis=None)
    results = []
    with np.errstate(invalid="ignore", over="ignore"):
        linear = np.quantile(ordered, list(QUANTILES.values()))
    for share, quantile in zip(QUANTILES.values(), linear, strict=True):
        index = share * (len(ordered) - 1)
        # On a value beside an infinite one, numpy adds 0 · ∞.
        results.append(finite(ordered[int(index)] if index == int(index) else quantile))
    return results


def mean_digits(values: Values, error: ErrorKind) -> Digits:
    """The mean of (seeds, prompts) digits with its interval."""
    interval = mean_interval(values[..., None], "digits")
    with np.errstate(invalid="ignore"):
        mean = values.mean()
    return Digits(
        mean=finite(mean),
        low=finite(interval.low[0]),
        high=finite(interval.high[0]),
        interval=interval.kind[0],
        error=error,
    )


def curve(values: Values, axis: Axis, kind: MetricKind | None = None) -> Curve:
    """The statistics of (seeds, prompts, axis) values at each value of the axis."""
    interval = mean_interval(values, _quantity(kind))
    ordered = _nan_as_worst(values, kind)
    with np.errstate(invalid="ignore", over="ignore"):
        means, medians = values.mean(axis=(0, 1)), np.median(ordered, axis=(0, 1))
    return Curve(
        axis=axis.name,
        values=list(axis.values),
        mean=[finite(v) for v in means],
        median=[finite(v) for v in medians],
        max=[finite(v) for v in ordered.max(axis=(0, 1))],
        low=[finite(v) for v in interval.low],
        high=[finite(v) for v in interval.high],
        interval=interval.kind,
    )


def _quantity(kind: MetricKind | None) -> Quantity:
    if kind is None:
        return "metric"
    return "fraction" if kind == "fraction" else "error"


def _nan_as_worst(values: np.ndarray, kind: MetricKind | None) -> np.ndarray:
    # As an error, NaN is as bad as an infinite one. Of other metrics the worst value is unknown:
    # NaN stays, and they have no quantiles.
    return np.where(np.isnan(values), np.inf, values) if _quantity(kind) == "error" else values
