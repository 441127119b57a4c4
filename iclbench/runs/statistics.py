"""The statistics of a record: over seeds and prompts, with intervals by a crossed bootstrap."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from ..api.random import philox
from ..api.statistics import Curve, Statistics, finite

if TYPE_CHECKING:
    from ..api.task import Axis


RESAMPLES = 2000
#: Prompts are resampled in this many blocks, which bounds the memory for many prompts.
BLOCKS = 20
QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}

#: Values of one metric: (seeds, prompts), or (seeds, prompts, axis).
Values = np.ndarray

#: The names of metrics made from a grader's scores begin with this.
GRADE = "grade_"


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
) -> Summary:
    """Summarize metrics (seeds, prompts[, axis]) and those of the floor (prompts[, axis]).

    A metric that `axes` names has a curve as well.
    """
    floors = {name: v[None] for name, v in floor_values.items()}
    seeds = len(next(iter(values.values())))
    return Summary(
        metrics=_summaries(values),
        seeds=[_summaries({n: v[i : i + 1] for n, v in values.items()}) for i in range(seeds)],
        floor=_summaries(floors),
        curves={n: curve(values[n], axis) for n, axis in axes.items() if n in values},
        floor_curves={n: curve(floors[n], axis) for n, axis in axes.items() if n in floors},
    )


def _summaries(values: Mapping[str, Values]) -> dict[str, Statistics]:
    return {name: summarize(graded(name, v)) for name, v in values.items()}


def graded(name: str, values: Values) -> Values:
    """The values of a metric. For a grade, only the prompts that were graded for every seed.

    A grade that is NaN could not be obtained, which says nothing about the model. In any other
    metric, NaN is as bad as an infinite error.
    """
    if not name.startswith(GRADE):
        return values
    return values[:, ~np.isnan(values).any(axis=(0, *range(2, values.ndim)))]


def summarize(values: Values) -> Statistics:
    """The statistics of (seeds, prompts[, axis]) values; an axis is averaged for each prompt."""
    if values.shape[1] == 0:
        return Statistics(**dict.fromkeys(set(Statistics.model_fields) - {"n"}), n=0)
    per_prompt = values.mean(axis=2) if values.ndim == 3 else values
    low, high = mean_interval(per_prompt[..., None])
    with np.errstate(invalid="ignore"):
        quantiles = np.quantile(_nan_as_infinite(per_prompt), list(QUANTILES.values()))
    return Statistics(
        mean=finite(per_prompt.mean()),
        low=finite(low[0]),
        high=finite(high[0]),
        n=per_prompt.shape[1],
        **{name: finite(q) for name, q in zip(QUANTILES, quantiles, strict=True)},
    )


def curve(values: Values, axis: Axis) -> Curve:
    """The statistics of (seeds, prompts, axis) values at each value of the axis."""
    low, high = mean_interval(values)
    ordered = _nan_as_infinite(values)
    return Curve(
        axis=axis.name,
        values=list(axis.values),
        mean=[finite(v) for v in values.mean(axis=(0, 1))],
        median=[finite(v) for v in np.median(ordered, axis=(0, 1))],
        max=[finite(v) for v in ordered.max(axis=(0, 1))],
        low=[finite(v) for v in low],
        high=[finite(v) for v in high],
    )


def mean_interval(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """The 95% interval of the mean of (seeds, prompts, k) values: two arrays (k,).

    Crossed bootstrap: seeds and prompts are resampled independently, since every seed is
    evaluated on the same prompts; with one seed, only prompts are resampled. Values of one sign
    have no bound beyond 0. The interval is NaN where a value is not finite.
    """
    usable = np.isfinite(values).all(axis=(0, 1))
    low, high = np.full((2, values.shape[2]), np.nan)
    if usable.any():
        usable_values = values[:, :, usable]
        bounds = np.quantile(resampled_means(usable_values), [0.025, 0.975], axis=0)
        smallest, largest = usable_values.min(axis=(0, 1)), usable_values.max(axis=(0, 1))
        low[usable] = np.where(smallest >= 0, np.maximum(bounds[0], 0), bounds[0])
        high[usable] = np.where(largest <= 0, np.minimum(bounds[1], 0), bounds[1])
    return low, high


def resampled_means(values: Values, stream: int = 0) -> np.ndarray:
    """Bootstrap means (RESAMPLES, k) of finite (seeds, prompts, k) values.

    Every call resamples the same prompts, so that differences of two models are paired; models
    with different `stream` resample different seeds. A few seeds understate their spread, so
    deviations between seeds are widened to those of Student's t for that number of seeds.
    """
    seeds, prompts, _ = values.shape
    equal = np.full(seeds, 1 / seeds)
    weights = equal + _widening(seeds) * (_counts("seeds", seeds, stream, 0) / seeds - equal)
    means = []
    for block in range(BLOCKS):
        over_prompts = np.tensordot(_counts("prompts", prompts, 0, block), values, axes=(1, 1))
        rows = weights[block * len(over_prompts) :][: len(over_prompts)]
        means.append(np.einsum("bs,bsk->bk", rows, over_prompts / prompts))
    return np.concatenate(means)


def _widening(seeds: int) -> float:
    """The factor from the spread of resampled seeds, √((S−1)/S) of the true, to a t interval."""
    if seeds < 2:
        return 1.0
    return float(np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, 0.975) / ndtri(0.975))


@functools.lru_cache(maxsize=4 * BLOCKS)
def _counts(unit: str, n: int, stream: int, block: int) -> np.ndarray:
    """How often each of n units is drawn, (resamples, n): all for seeds, a block's for prompts."""
    size = RESAMPLES if unit == "seeds" else RESAMPLES // BLOCKS
    rng = philox("interval", unit, stream, block)
    return rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float32)


def _nan_as_infinite(values: np.ndarray) -> np.ndarray:
    # NaN would make every quantile NaN, or hide; as an error it is as bad as an infinite one.
    return np.where(np.isnan(values), np.inf, values)
