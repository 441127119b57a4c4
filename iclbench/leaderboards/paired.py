"""The paired difference of two rows, by Welch's t with the variance of prompts and of seeds.

Pure functions of arrays. A row is a (seeds, prompts) array of what ranks, as in `ranking.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from ..runs.intervals import components, skewed

#: The probability that any of a board's rows is called different from another that it equals.
SIGNIFICANCE = 0.05
#: With fewer degrees of freedom, an interval reaches further than any number that was measured.
LEAST_FREEDOM = 0.5
#: No p-value is smaller, unless it is 0.
LEAST_P = 1e-100
#: Means that differ by less than about this fraction are equal: processors add in other orders.
ROUNDING = 1e-12


class Difference(NamedTuple):
    """A mean paired difference with its 95% interval, and the p-value of no difference.

    It is not corrected for the number of pairs on a board, and NaN where nothing follows.
    """

    mean: float
    low: float
    high: float
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.p < SIGNIFICANCE


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def difference(first: np.ndarray, second: np.ndarray, *, in_digits: bool) -> Difference:
    """The paired difference first − second of two rows; values not finite have no interval.

    The prompts are shared, the seeds of two rows independent; a single seed is taken as it is. The
    p-value is the level at which the interval begins to hold 0.

    A mean of errors is skewed: a row that happens to miss its rare bad seeds looks better, and more
    certain, than it is. So two means of one sign, unless they are `in_digits`, must also differ by
    their ratio. With u, the half-width of the difference of relative values, log(first / second) is
    known to `skewed(u)`, as for single rows. The interval is then at least that, times the
    logarithmic mean of the two, by which a logarithm of a ratio is a difference.
    """
    a, b = float(first.mean()), float(second.mean())
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Difference(a - b, np.nan, np.nan, np.nan)
    if first.shape[1] < 2:
        return Difference(a - b, -np.inf, np.inf, np.nan)
    spread = Spread.of(first, second)
    half = spread.half_width(SIGNIFICANCE)
    # Squares overflow, or two prompts leave too few degrees of freedom.
    if not np.isfinite(half) or spread.freedom < LEAST_FREEDOM:
        return Difference(a - b, np.nan, np.nan, 1.0 if a == b else np.nan)
    p = _level(spread.half_width, abs(a - b))
    if not in_digits and common_sign(first) * common_sign(second) > 0:
        relative = Spread.of(first / a, second / b)
        u = relative.half_width(SIGNIFICANCE)
        half = max(half, abs(_logarithmic_mean(a, b)) * skewed(u))
        p = max(p, _level(relative.half_width, float(least_distance(np.array(a / b)))))
    return Difference(a - b, a - b - half, a - b + half, p)


def common_sign(values: np.ndarray) -> int:
    """The sign of a row's mean if no value has the other, and 0 otherwise."""
    if values.min() >= 0:
        return int(values.max() > 0)
    return -int(values.max() <= 0)


def least_distance(ratio: np.ndarray) -> np.ndarray:
    """The u at which `skewed(u)` reaches the logarithm of a ratio of means, or of its inverse."""
    return np.asarray(np.sqrt(1 + 2 * np.abs(np.log(ratio))) - 1)


def _logarithmic_mean(a: float, b: float) -> float:
    """(a − b) / log(a / b), which lies between two numbers of one sign."""
    logarithm = np.log(a / b)
    return float((a - b) / logarithm) if logarithm else a


class Spread(NamedTuple):
    """What the mean difference of two rows varies by, over prompts and over the seeds of each."""

    of_prompts: np.floating
    rounding: np.floating
    prompts: int
    seeds: tuple[OfSeeds, OfSeeds]

    @classmethod
    def of(cls, first: np.ndarray, second: np.ndarray) -> Spread:
        """That of two rows of finite values and two prompts or more."""
        of_prompts, rounding = (matrix[0, 1] for matrix in covariances([first, second]))
        seeds = of_seeds(first), of_seeds(second)
        # The differences vary over prompts by what seeds × prompts add to each row, or more.
        of_prompts = np.maximum(of_prompts, sum(part.both for part in seeds))
        return cls(of_prompts, rounding, first.shape[1], seeds)

    @property
    def variance(self) -> np.floating:
        """The variance of the mean difference."""
        return self.of_prompts + sum(part.variance for part in self.seeds)

    @property
    def freedom(self) -> np.floating:
        """Satterthwaite's degrees of freedom of that variance."""
        squares = self.of_prompts**2 / (self.prompts - 1) + sum(p.squares for p in self.seeds)
        return self.variance**2 / squares if squares > 0 else np.float64(self.prompts - 1)

    def half_width(self, level: float) -> float:
        """Half the width of the interval that misses the difference with probability `level`.

        As for single rows, few seeds that happen to agree are not taken at their word: it is at
        least that of Banerjee (1960).
        """
        t, of_prompts = (stdtrit(f, level / 2) for f in (self.freedom, self.prompts - 1))
        wide = of_prompts**2 * self.of_prompts + sum(part.wide(level) for part in self.seeds)
        squared = np.maximum(t**2 * self.variance, wide) + t**2 * self.rounding
        return float(np.sqrt(np.nan_to_num(squared, nan=np.inf)))  # ∞ times 0 at small levels


class OfSeeds(NamedTuple):
    """What seeds add to the variance of a row's mean; all 0 for a single seed.

    `both` is the part of seeds × prompts, which prompts show, too, and `total` the variance of the
    seeds' means, which includes it and has `freedom`. `squares` is what they add to the denominator
    of Satterthwaite's degrees of freedom.
    """

    total: float
    both: float
    squares: float
    freedom: int

    @property
    def variance(self) -> float:
        """What seeds add to the variance that prompts show."""
        return self.total - self.both

    def wide(self, level: float) -> float:
        """`total` times the squared t of its degrees of freedom, as Banerjee's interval adds it."""
        return float(stdtrit(self.freedom, level / 2) ** 2 * self.total)


def of_seeds(values: np.ndarray) -> OfSeeds:
    """The part of the seeds of a row of (seeds, prompts) values."""
    seeds, prompts = values.shape
    if seeds == 1:
        return OfSeeds(0.0, 0.0, 0.0, 1)
    parts = components(values[..., None])
    # NumPy's numbers become infinite where Python's would raise.
    total, both = (x[0] / (seeds * prompts) for x in (parts.seeds, parts.both))
    with np.errstate(over="ignore"):
        squares = total**2 / (seeds - 1) + both**2 / ((seeds - 1) * (prompts - 1))
    return OfSeeds(float(total), float(both), float(squares), seeds - 1)


def covariances(values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The variances over prompts of the mean differences of all pairs of n rows, (n, n).

    And what rounding of the sums and of the means may be at most, as a variance.
    """
    by_prompt = np.stack([row.mean(axis=0) for row in values])
    prompts = by_prompt.shape[1]
    means = by_prompt.mean(axis=1)
    centered = by_prompt - means[:, None]
    products = centered @ centered.T / (prompts * max(prompts - 1, 1))
    alone = np.diag(products)
    sums = alone[:, None] + alone
    largest = np.maximum(np.abs(means)[:, None], np.abs(means))
    return np.maximum(sums - 2 * products, 0.0), 1e-14 * sums + (ROUNDING * largest) ** 2


def _level(half_width: Callable[[float], float], distance: float) -> float:
    """The level at which an interval of this half-width reaches as far; the width falls with it."""
    if distance == 0:
        return 1.0
    if half_width(LEAST_P) <= distance:
        return 0.0
    # Importing it takes 0.1 s, and no board needs it.
    from scipy.optimize import brentq

    logarithm = brentq(lambda x: half_width(10**x) - distance, np.log10(LEAST_P), 0.0)
    return float(10**logarithm)
