"""Ranking: which rows of a board differ, and the interval of ranks that follows for each.

Pure functions of arrays. A row is a (seeds, prompts) array of what ranks: digits, or a metric. All
rows have the same prompts. The mean over seeds and prompts ranks, and the same mean is tested,
two-sided and paired on the prompts, with the variance components of `iclbench/runs/intervals.py`:
all pairs of a board by `all_pairs.py`, and two rows alone by Welch's t.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ..runs.heldout import NEAR_ATTAINABLE
from ..runs.intervals import components
from .all_pairs import p_values, seed_variances

#: The probability that any of a board's rows is called different from another that it equals.
SIGNIFICANCE = 0.05
#: A row is at the floor if its median and 99th percentile lack at most this many digits.
NEAR_FLOOR = 1.0
#: With fewer degrees of freedom, an interval reaches further than any number that was measured.
LEAST_FREEDOM = 0.5
#: No p-value is smaller, unless it is 0.
LEAST_P = 1e-100
#: Means that differ by less than about this fraction are equal: processors add in other orders.
ROUNDING = 1e-12

Better = Literal["lower", "higher"]


class Rank(NamedTuple):
    """The first and the last rank that a row may have; written as `3–5`, or `3` if they agree."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


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


def ranked_values(values: np.ndarray, attainable: np.ndarray | None = None) -> np.ndarray:
    """The (seeds, prompts) values that rank: digits within one of the attainable count as that.

    `attainable` has the digits of the attainable error of the first prompts, (n,); the others get
    their median. None leaves the values as they are.
    """
    if attainable is None:
        return values
    most = np.full(values.shape[1], np.median(attainable))
    known = attainable[: len(most)]
    most[: len(known)] = known
    return np.asarray(np.minimum(values, most - NEAR_ATTAINABLE))


def best_first(
    values: Sequence[np.ndarray], names: Sequence[tuple[str, ...]], better: Better
) -> list[int]:
    """The indices of rows by their mean, best first, then by name; means not finite come last."""
    sign = 1.0 if better == "lower" else -1.0

    def key(row: int) -> tuple[bool, float, tuple[str, ...]]:
        is_finite = bool(np.isfinite(values[row]).all())
        return not is_finite, sign * float(values[row].mean()) if is_finite else 0.0, names[row]

    return sorted(range(len(values)), key=key)


def ranks(values: Sequence[np.ndarray], better: Better) -> list[Rank]:
    """The ranks of rows, in their order, which does not affect them.

    A row's rank is from 1 + the number of rows significantly better to n − the number
    significantly worse, Holm-corrected over all pairs. A row with a value that is not finite is
    worse than those without, and not different from others like it.
    """
    is_finite = np.array([bool(np.isfinite(row).all()) for row in values], dtype=bool)
    # [i, j]: row i is significantly better than row j.
    wins = is_finite[:, None] & ~is_finite
    if is_finite.sum() > 1:
        usable = [row for row, finite in zip(values, is_finite, strict=True) if finite]
        mean, p = differences_of_all(usable)
        ahead = mean < 0 if better == "lower" else mean > 0
        wins[np.ix_(is_finite, is_finite)] = ahead & holm(p)
    first, last = 1 + wins.sum(axis=0), len(values) - wins.sum(axis=1)
    return [Rank(int(a), int(b)) for a, b in zip(first, last, strict=True)]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def differences_of_all(values: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mean differences of all pairs of rows of finite values, and their p-values: (n, n) each.

    They are for the small p-values that many pairs ask for; see `all_pairs`. A p-value is NaN where
    squares of the values are too large.
    """
    paired = _paired(values)
    prompts = values[0].shape[1]
    if prompts < 2:
        return paired.mean, np.ones_like(paired.mean)
    variance = paired.of_prompts + paired.rounding
    size, seeds = abs(paired.mean), seed_variances(values)
    return paired.mean, p_values(size, variance, prompts, seeds, SIGNIFICANCE)


class _Paired(NamedTuple):
    """Of all pairs of n rows, (n, n): the mean difference and its variance over prompts.

    `rounding` is what rounding of the sums and of the means may be at most, as a variance.
    """

    mean: np.ndarray
    of_prompts: np.ndarray
    rounding: np.ndarray


def _paired(values: Sequence[np.ndarray]) -> _Paired:
    by_prompt = np.stack([row.mean(axis=0) for row in values])
    prompts = by_prompt.shape[1]
    means = by_prompt.mean(axis=1)
    centered = by_prompt - means[:, None]
    products = centered @ centered.T / (prompts * max(prompts - 1, 1))
    alone = np.diag(products)
    sums = alone[:, None] + alone
    largest = np.maximum(np.abs(means)[:, None], np.abs(means))
    return _Paired(
        means[:, None] - means,
        np.maximum(sums - 2 * products, 0.0),
        1e-14 * sums + (ROUNDING * largest) ** 2,
    )


class OfSeeds(NamedTuple):
    """What seeds add to the variance of a row's mean; all 0 for a single seed.

    `squares` is what they add to the denominator of Satterthwaite's degrees of freedom, and `total`
    the variance of the seeds' means, that of seeds × prompts included, which has `freedom`.
    """

    variance: float
    squares: float
    total: float
    freedom: int

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
    return OfSeeds(float(total - both), float(squares), float(total), seeds - 1)


def holm(p: np.ndarray) -> np.ndarray:
    """Which of the (n, n) p-values are significant, corrected over the pairs (Holm 1979)."""
    pairs = np.triu_indices(len(p), 1)
    ordered = np.argsort(p[pairs], kind="stable")
    remaining = np.arange(len(ordered), 0, -1)
    corrected = np.maximum.accumulate(remaining * p[pairs][ordered])
    significant = np.zeros(p.shape, dtype=bool)
    chosen = ordered[corrected < SIGNIFICANCE]
    significant[pairs[0][chosen], pairs[1][chosen]] = True
    return np.asarray(significant | significant.T)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def difference(first: np.ndarray, second: np.ndarray) -> Difference:
    """The paired difference first − second of two rows; values not finite have no interval.

    The prompts are shared, the seeds of two rows independent; a single seed is taken as it is. The
    variance is that of the differences over prompts, and the seeds' of either row; its degrees of
    freedom are Satterthwaite's. As for the intervals of single rows, few seeds that happen to agree
    are not taken at their word: the interval is at least Banerjee's (1960). The p-value is the
    level at which the interval begins to hold 0.
    """
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return Difference(float(first.mean() - second.mean()), np.nan, np.nan, np.nan)
    prompts = first.shape[1]
    mean, of_prompts, rounding = (matrix[0, 1] for matrix in _paired([first, second]))
    if prompts < 2:
        return Difference(float(mean), -np.inf, np.inf, np.nan)
    seeds = of_seeds(first), of_seeds(second)
    variance = of_prompts + sum(part.variance for part in seeds)
    denominator = of_prompts**2 / (prompts - 1) + sum(part.squares for part in seeds)
    freedom = variance**2 / denominator if denominator > 0 else prompts - 1.0

    def half_width(level: float) -> float:
        t, t_of_prompts = stdtrit(freedom, level / 2), stdtrit(prompts - 1, level / 2)
        wide = t_of_prompts**2 * of_prompts + sum(part.wide(level) for part in seeds)
        squared = np.maximum(t**2 * variance, wide) + t**2 * rounding
        return float(np.sqrt(np.nan_to_num(squared, nan=np.inf)))  # ∞ times 0 at small levels

    half = half_width(SIGNIFICANCE)
    # Squares of such numbers are too large, or seeds so few that nothing follows.
    if not np.isfinite(half) or freedom < LEAST_FREEDOM:
        return Difference(float(mean), np.nan, np.nan, 1.0 if mean == 0 else np.nan)
    p = _level(half_width, abs(mean))
    return Difference(float(mean), float(mean - half), float(mean + half), p)


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


def at_floor(values: np.ndarray, floor_values: np.ndarray) -> bool:
    """Whether digits are those of the floor, less at most one, in the median and the 1% worst."""
    # Of the values themselves: interpolation between infinite digits has no value.
    reached, attainable = (
        np.quantile(digits, [0.5, 0.01], method="lower") for digits in (values, floor_values)
    )
    return bool((reached >= attainable - NEAR_FLOOR).all())
