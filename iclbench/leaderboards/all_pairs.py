"""The p-values of all pairs of a board's rows, where each row has few seeds.

Two or three seeds often agree by chance, and a board asks for small p-values, so what few seeds
show of their variance can't be taken at its word. Each row's variance of seeds has a distribution
here, that of its own seeds moderated by what the board's rows have in common (Smyth 2004,
https://doi.org/10.2202/1544-6115.1027), and the p-value is the mean over it, which is the
Behrens-Fisher test where nothing is moderated.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri, digamma, polygamma, stdtr

from ..runs.intervals import components

#: The variance that fewer rows have in common is a guess, which would add degrees of freedom.
FEWEST = 5
#: Points of the quadrature over one variance, and the probability that it leaves out at each end.
POINTS, BEYOND = 20, 1e-9
#: The values of t at which tails are computed; between them, their logarithm is interpolated. With
#: few prompts, tails are long.
KNOTS = np.concatenate([np.linspace(0.0, 50.0, 20_001), np.geomspace(50.0, 1e9, 10_001)[1:]])


class SeedVariances(NamedTuple):
    """What seeds add to the variance of each of n rows' means: all (n,).

    `total` includes the variance of seeds × prompts, whose part is `both`; `freedom` is the number
    of the row's seeds less one.
    """

    total: np.ndarray
    both: np.ndarray
    freedom: np.ndarray


def seed_variances(values: Sequence[np.ndarray]) -> SeedVariances:
    """Those of rows of (seeds, prompts) values."""
    parts = [(components(row[..., None]), row.size, len(row) - 1) for row in values]
    return SeedVariances(
        np.array([float(part.seeds[0]) / size for part, size, _ in parts]),
        np.array([float(part.both[0]) / size for part, size, _ in parts]),
        np.array([float(freedom) for *_, freedom in parts]),
    )


def moderated(seeds: SeedVariances) -> tuple[np.ndarray, np.ndarray]:
    """The rows' total variances and degrees of freedom, moderated by those of the other rows.

    What is moderated is the variance of one seed, since rows may have different numbers of them.
    The board counts at most as much as a row's own seeds: rows of different architectures need not
    vary alike. But no row varies less than the median row: where some seeds make a transition that
    others miss, all seeds of a row may be of one kind by chance, and then agree. This can't help
    where few rows have such seeds (docs/statistics.md).
    """
    count = seeds.freedom + 1
    of_one = seeds.total * count
    common, freedom = _common(of_one, seeds.freedom)
    added = np.minimum(freedom, seeds.freedom)
    total = seeds.freedom + added
    mixed = seeds.freedom * of_one + added * common
    variances = np.divide(mixed, total, out=np.zeros_like(total), where=total > 0)
    has_seeds = seeds.freedom > 0
    if has_seeds.any():
        least = np.median(of_one[has_seeds])
        variances[has_seeds] = np.maximum(variances[has_seeds], least)
    return variances / count, total


def _common(variances: np.ndarray, freedom: np.ndarray) -> tuple[float, float]:
    """The variance that rows have in common, and how many degrees of freedom it has.

    Moments of the logarithm, as by Smyth; no degree of freedom where fewer than `FEWEST` rows vary.
    """
    varies = (freedom > 0) & (variances > 0)
    if varies.sum() < FEWEST:
        return 0.0, 0.0
    half = freedom[varies] / 2
    logs = np.log(variances[varies]) - digamma(half) + np.log(half)
    spread = float(logs.var(ddof=1) - polygamma(1, half).mean())
    if not np.isfinite(spread):  # squares of such numbers are too large
        return 0.0, 0.0
    # Where the rows differ no more than their few seeds explain, they vary alike.
    if spread <= float(polygamma(1, 1e6)):
        return float(np.exp(logs.mean())), np.inf
    # Importing it takes 0.1 s, and a board without seeds never gets here.
    from scipy.optimize import brentq

    prior = float(brentq(lambda x: float(polygamma(1, x)) - spread, 1e-6, 1e6))
    return float(np.exp(logs.mean() + digamma(prior) - np.log(prior))), 2 * prior


def p_values(
    size: np.ndarray,
    of_prompts: np.ndarray,
    prompts: int,
    seeds: SeedVariances,
    most: float = 1.0,
) -> np.ndarray:
    """The two-sided p-values of all pairs: (n, n).

    `size` has the absolute differences of means, `of_prompts` the variances of the paired
    differences over prompts, both (n, n). A p-value that is at least `most` by the prompts alone is
    1: seeds only make it larger, and a thousand rows have half a million pairs.
    """
    variance, freedom = moderated(seeds)
    added = [
        (np.maximum(v * points - both, 0.0), weights)
        for v, both, (points, weights) in zip(
            variance, seeds.both, map(_inverse_chi_square, freedom), strict=True
        )
    ]
    p = np.ones_like(size)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = 2 * stdtr(prompts - 1, -size / np.sqrt(of_prompts))
    log_tails = np.log(np.maximum(2 * stdtr(prompts - 1, -KNOTS), np.finfo(float).tiny))
    for i, j in np.argwhere(np.tril(size > 0, -1) & ~(least >= most)):
        (first, weights), (second, others) = added[i], added[j]
        error = np.sqrt(of_prompts[i, j] + first[:, None] + second)
        # Computing each tail would take most of the time of a large board.
        tails = np.exp(np.interp(size[i, j] / error, KNOTS, log_tails))
        p[i, j] = p[j, i] = weights @ tails @ others
    return p


@functools.lru_cache(maxsize=256)
def _inverse_chi_square(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """The points and weights of freedom / χ²; the point 1 alone without a degree of freedom.

    On a logarithmic scale its density is smooth and ends fast, so equal steps are exact enough.
    """
    if freedom == 0:
        return np.ones(1), np.ones(1)
    low, high = np.log(chdtri(freedom, np.array([1 - BEYOND, BEYOND])))
    logs = np.linspace(low, high, POINTS)
    exponents = freedom / 2 * logs - np.exp(logs) / 2
    weights = np.exp(exponents - exponents.max())
    return freedom * np.exp(-logs), weights / weights.sum()
