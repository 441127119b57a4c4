"""The statistics of a record: over seeds and prompts, with a crossed bootstrap."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from ..api.random import philox
from ..api.statistics import Curve, Statistics, finite

if TYPE_CHECKING:
    from ..api.task import Axis


RESAMPLES = 2000
#: Prompts are resampled in blocks, which bounds the memory for many prompts.
BLOCKS = 20
QUANTILES = {"q05": 0.05, "q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}

#: Values of one metric: (seeds, prompts), or (seeds, prompts, axis).
Values = np.ndarray

#: The metrics that a grader's scores become begin with this.
GRADE = "grade_"


def graded(name: str, values: Values) -> Values:
    """A metric's values; of a grade's, those of the prompts whose grading failed for no seed.

    A grade that is NaN is one that could not be had, which says nothing of the model, while any
    other value that is not a number is as bad as an infinite error.
    """
    if not name.startswith(GRADE):
        return values
    return values[:, ~np.isnan(values).any(axis=(0, *range(2, values.ndim)))]


def summarize(values: Values) -> Statistics:
    """Statistics of (seeds, prompts[, axis]) values; an axis is averaged for each prompt."""
    if values.shape[1] == 0:
        return Statistics(**dict.fromkeys(set(Statistics.model_fields) - {"n"}), n=0)
    per_prompt = values.mean(axis=2) if values.ndim == 3 else values
    low, high = mean_interval(per_prompt[..., None])
    with np.errstate(invalid="ignore"):
        quantiles = np.quantile(_ordered(per_prompt), list(QUANTILES.values()))
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
    return Curve(
        axis=axis.name,
        values=list(axis.values),
        mean=[finite(v) for v in values.mean(axis=(0, 1))],
        median=[finite(v) for v in np.median(_ordered(values), axis=(0, 1))],
        max=[finite(v) for v in _ordered(values).max(axis=(0, 1))],
        low=[finite(v) for v in low],
        high=[finite(v) for v in high],
    )


def mean_interval(values: Values) -> tuple[np.ndarray, np.ndarray]:
    """95% interval of the mean of (seeds, prompts, k) values, for each of the k; NaN if infinite.

    Crossed bootstrap: seeds and prompts are resampled independently, since every seed is
    evaluated on the same prompts; with one seed it is prompts alone. No bound is given beyond 0
    for values that have one sign.
    """
    usable = np.isfinite(values).all(axis=(0, 1))
    low, high = np.full((2, values.shape[2]), np.nan)
    if usable.any():
        kept = values[:, :, usable]
        bounds = np.quantile(resampled_means(kept), [0.025, 0.975], axis=0)
        smallest, largest = kept.min(axis=(0, 1)), kept.max(axis=(0, 1))
        low[usable] = np.where(smallest >= 0, np.maximum(bounds[0], 0), bounds[0])
        high[usable] = np.where(largest <= 0, np.minimum(bounds[1], 0), bounds[1])
    return low, high


def resampled_means(values: Values, stream: int = 0) -> np.ndarray:
    """Bootstrap means (RESAMPLES, k) of finite (seeds, prompts, k) values.

    Prompts are resampled alike in every call, so that differences of two models are paired;
    `stream` sets two models' resampled seeds apart. A few seeds understate their own spread, so
    their deviations are widened to what Student's t asks for that number of seeds.
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
    """Turns the spread of resampled seeds, √((S−1)/S) of it, into that of a t interval."""
    if seeds < 2:
        return 1.0
    return float(np.sqrt(seeds / (seeds - 1)) * stdtrit(seeds - 1, 0.975) / ndtri(0.975))


@functools.lru_cache(maxsize=4 * BLOCKS)
def _counts(what: str, n: int, stream: int, block: int) -> np.ndarray:
    """How often each of n is drawn, (resamples, n): all resamples of seeds, a block of prompts."""
    size = RESAMPLES if what == "seeds" else RESAMPLES // BLOCKS
    rng = philox("interval", what, stream, block)
    return rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float32)


def _ordered(values: np.ndarray) -> np.ndarray:
    # An error that is not a number is as bad as an infinite one, so that it can't hide.
    return np.where(np.isnan(values), np.inf, values)
