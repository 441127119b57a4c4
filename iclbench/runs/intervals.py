"""Intervals of means over crossed seeds and prompts, by variance components.

Every seed is evaluated on the same prompts, so values are a table of two crossed random factors
with one value in each cell. The variance of the mean follows from the mean squares of seeds,
prompts and both, and its degrees of freedom from Satterthwaite (1946). `benchmarks/coverage.py`
checks by simulation how often the intervals cover; docs/statistics.md has the results.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri, stdtrit

from ..api.statistics import IntervalKind

#: What the values are: errors (not negative), digits (of either sign), fractions from 0 to 1, or
#: any other metric.
Quantity = Literal["error", "digits", "fraction", "metric"]
NumberT = TypeVar("NumberT", float, np.ndarray)

#: A mean of positive values is unreliable if their upper tail is heavier than that of log-normal
#: values of this σ (of the natural logarithm), by these quantiles.
TAIL, TAIL_QUANTILES = 2.25, (0.9, 0.975)
#: … or if one prompt holds more than this share of the sum, and more than so many equal shares.
#: A smaller share would be met by chance, and accept the samples that happen to miss a heavy tail.
DOMINANT, EQUAL_SHARES = 0.5, 3
#: Seeds that leave a gap of more than so many digits are not of one kind: some failed …
SEED_GAP = 3.0
#: … and so are those whose mean errors leave a gap of more than so many powers of ten.
SEED_RATIO = 2.0
#: An interval of positive values says nothing if its upper bound is more than so many means.
WIDEST = 1000.0


class Interval(NamedTuple):
    """Bounds of k means, arrays (k,); NaN and None where a mean has none."""

    low: np.ndarray
    high: np.ndarray
    kind: list[IntervalKind | None]
    #: Whether the 95% interval can be trusted.
    reliable: np.ndarray


class Components(NamedTuple):
    """The mean squares of (seeds, prompts, k) values, all (k,) but the means.

    `seeds` and `both` are 0 for a single seed. No mean square is below that of `both`, as none of
    the variances that they estimate is negative.
    """

    by_seed: np.ndarray
    by_prompt: np.ndarray
    seeds: np.ndarray
    prompts: np.ndarray
    both: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """The mean over seeds and prompts."""
        return np.asarray(self.by_seed.mean(axis=0))

    def variance(self) -> tuple[np.ndarray, np.ndarray]:
        """The variance of the mean over seeds and prompts, and its degrees of freedom."""
        seeds, prompts = len(self.by_seed), len(self.by_prompt)
        total = self.seeds + self.prompts - self.both
        squares = self.prompts**2 / (prompts - 1)
        if seeds > 1:
            squares = squares + self.seeds**2 / (seeds - 1)
            squares = squares + self.both**2 / ((seeds - 1) * (prompts - 1))
        # A mean without any variance has a degree of freedom for each prompt.
        freedom = np.divide(total**2, squares, out=np.full_like(total, prompts - 1.0),
                            where=squares > 0)  # fmt: skip
        return total / (seeds * prompts), freedom

    def half_width(self) -> np.ndarray:
        """Half the width of the mean's 95% interval, with Satterthwaite's degrees of freedom.

        They are too many where few seeds happen to agree. So it is at least Banerjee's (1960): the
        variance of each component, times the squared t of its own degrees of freedom.
        """
        seeds, prompts = len(self.by_seed), len(self.by_prompt)
        variance, freedom = self.variance()
        squared = stdtrit(freedom, 0.975) ** 2 * variance
        if seeds > 1:
            of_seeds = stdtrit(seeds - 1, 0.975) ** 2 * (self.seeds - self.both)
            of_prompts = stdtrit(prompts - 1, 0.975) ** 2 * self.prompts
            squared = np.maximum(squared, (of_seeds + of_prompts) / (seeds * prompts))
        return np.asarray(np.sqrt(squared))


def components(values: np.ndarray) -> Components:
    """The mean squares of finite (seeds, prompts, k) values; two prompts or more."""
    seeds, prompts = values.shape[:2]
    by_seed, by_prompt = values.mean(axis=1), values.mean(axis=0)
    of_prompts = seeds * by_prompt.var(axis=0, ddof=1)
    if seeds == 1:
        zero = np.zeros_like(of_prompts)
        return Components(by_seed, by_prompt, zero, of_prompts, zero)
    of_seeds = prompts * by_seed.var(axis=0, ddof=1)
    residual = values - by_seed[:, None] - by_prompt + by_seed.mean(axis=0)
    both = np.square(residual, out=residual).sum(axis=(0, 1)) / ((seeds - 1) * (prompts - 1))
    return Components(
        by_seed, by_prompt, np.maximum(of_seeds, both), np.maximum(of_prompts, both), both
    )


def mean_interval(values: np.ndarray, quantity: Quantity = "metric") -> Interval:
    """The 95% intervals of the k means of (seeds, prompts, k) values.

    Values of one sign have no bound beyond 0, and fractions none beyond 1. With one seed the
    interval holds for that seed. Where it can't be trusted, several seeds give their range. A
    single prompt, or a value that is not finite, gives no interval.
    """
    seeds, prompts, count = values.shape
    bounds = np.full((2, count), np.nan)
    kinds = np.full(count, None, dtype=object)
    reliable = np.zeros(count, dtype=bool)
    usable = np.isfinite(values).all(axis=(0, 1))
    if prompts > 1 and usable.any():
        finite = values if usable.all() else values[:, :, usable]
        bounds[:, usable], reliable[usable] = _bounds(finite, quantity)
        kinds[usable] = "prompts"
        if seeds > 1:
            kinds[usable] = np.where(reliable[usable], "seeds and prompts", "range over seeds")
    return Interval(bounds[0], bounds[1], kinds.tolist(), reliable)


def _bounds(values: np.ndarray, quantity: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """The bounds (2, k) of finite values, and whether they are those of a reliable interval."""
    lowest, highest = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    # Scaled, so that squares neither overflow nor vanish. Negative values are turned around.
    scale = np.maximum(np.abs(lowest), np.abs(highest))
    scale[scale == 0] = 1.0
    if quantity != "digits":
        scale[(highest <= 0) & (lowest < 0)] *= -1
    scaled = values / scale
    parts = components(scaled)
    mean, half = parts.mean, parts.half_width()
    bounds = np.stack([mean - half, mean + half])
    by_seed = parts.by_seed
    if quantity == "digits":
        trusted = _has_no_gap(by_seed * scale, SEED_GAP)
    else:
        is_fraction = (lowest >= 0) & (highest <= 1) & (quantity == "fraction")
        is_positive = (scaled.min(axis=(0, 1)) >= 0) & ~is_fraction
        bounds[:, is_positive] = _of_positive(mean[is_positive], half[is_positive])
        fractions = (mean[is_fraction], half[is_fraction], scale[is_fraction])
        bounds[:, is_fraction] = _of_fraction(*fractions, values.shape[1])
        trusted = ~is_positive
        is_light = ~_is_heavy(scaled, parts.by_prompt) & (bounds[1] <= WIDEST * mean)
        trusted |= is_light & _has_no_gap(_magnitudes(by_seed), SEED_RATIO)
    if len(by_seed) > 1:
        bounds = np.where(trusted, bounds, [by_seed.min(axis=0), by_seed.max(axis=0)])
    return np.sort(bounds * scale, axis=0), trusted


def skewed(relative: NumberT) -> NumberT:
    """How far the logarithm of a positive mean may be off, for the relative half-width u: u + u²/2.

    For small u that is the symmetric interval; for large u it is as much longer upward as skewed
    values need.
    """
    return relative + relative**2 / 2


def _of_positive(mean: np.ndarray, half: np.ndarray) -> np.ndarray:
    """The bounds of the mean of values that are not negative, from half the symmetric width."""
    logarithm = skewed(np.divide(half, mean, out=np.zeros_like(mean), where=mean > 0))
    # With few heavy-tailed prompts the upper bound overflows; such an interval is not trusted.
    with np.errstate(over="ignore"):
        return np.stack([mean * np.exp(-logarithm), mean * np.exp(logarithm)])


def _of_fraction(mean: np.ndarray, half: np.ndarray, scale: np.ndarray, prompts: int) -> np.ndarray:
    """Wilson's bounds (1927) of a fraction, where 1 is 1 / scale, from half the symmetric width.

    The number of trials is that of independent ones with this width. Where all values are 0 or all
    are 1 it is the number of prompts, so that the interval does not collapse.
    """
    share = mean * scale
    spread = np.maximum(share * (1 - share), 0.0)
    # t² / trials, which is 0 for a constant between 0 and 1.
    least = np.full_like(mean, stdtrit(prompts - 1, 0.975) ** 2 / prompts)
    rarity = np.divide((half * scale) ** 2, spread, out=least, where=spread > 0)
    width = np.sqrt(rarity * (spread + rarity / 4))
    center, total = share + rarity / 2, 1 + rarity
    return np.asarray(np.clip(np.stack([center - width, center + width]) / total, 0, 1) / scale)


def _is_heavy(values: np.ndarray, by_prompt: np.ndarray) -> np.ndarray:
    """Whether few of (seeds, prompts, k) values that are not negative decide their mean, (k,)."""
    most = max(DOMINANT, EQUAL_SHARES / len(by_prompt))
    is_dominated = by_prompt.max(axis=0) > most * by_prompt.sum(axis=0)
    return np.asarray(is_dominated | (_tail(values) > TAIL))


def _tail(values: np.ndarray) -> np.ndarray:
    """How heavy the upper tail of (seeds, prompts, k) values is, (k,).

    The deviation σ of the logarithm of a log-normal distribution with the same ratio of these two
    quantiles. Unlike the skewness of a sample, it does not need the largest values to be seen.
    """
    lower, upper = np.quantile(values, TAIL_QUANTILES, axis=(0, 1))
    ratio = np.divide(upper, lower, out=np.where(upper > 0, np.inf, 1.0), where=lower > 0)
    return np.asarray(np.log(ratio) / np.diff(ndtri(TAIL_QUANTILES)))


def _magnitudes(by_seed: np.ndarray) -> np.ndarray:
    """The decimal logarithms of the seeds' means (seeds, k), 0 where all of them are 0.

    A single mean of 0 is -inf: it lies infinitely far from the others.
    """
    means = np.where((by_seed == 0).all(axis=0), 1.0, np.maximum(by_seed, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log10(means))


def _has_no_gap(levels: np.ndarray, most: float) -> np.ndarray:
    """Whether the sorted levels of the seeds, (seeds, k), lie at most so far apart, (k,)."""
    with np.errstate(invalid="ignore"):  # two of -inf, with an infinite gap above them
        return np.asarray((np.diff(np.sort(levels, axis=0), axis=0) <= most).all(axis=0))
