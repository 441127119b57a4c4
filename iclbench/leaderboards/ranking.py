"""Ranking: which rows of a board differ, and the interval of ranks that follows for each.

Pure functions of arrays. A row is a (seeds, prompts) array of what ranks: digits, or a metric. All
rows have the same prompts. The mean over seeds and prompts ranks, and the same mean is tested,
two-sided and paired on the prompts, with the variance components of `iclbench/runs/intervals.py`:
all pairs of a board by `all_pairs.py`, and two rows alone by `paired.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ..runs.heldout import NEAR_ATTAINABLE
from .all_pairs import p_values, seed_variances
from .paired import SIGNIFICANCE, common_sign, covariances, least_distance

#: A row is at the floor if its median and 99th percentile are at most so many digits worse.
NEAR_FLOOR = 1.0

Better = Literal["lower", "higher"]


class Rank(NamedTuple):
    """The first and the last rank that a row may have; written as `3–5`, or `3` if they agree."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


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


def ranks(values: Sequence[np.ndarray], better: Better, *, in_digits: bool) -> list[Rank]:
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
        mean, p = differences_of_all(usable, in_digits=in_digits)
        ahead = mean < 0 if better == "lower" else mean > 0
        wins[np.ix_(is_finite, is_finite)] = ahead & holm(p)
    first, last = 1 + wins.sum(axis=0), len(values) - wins.sum(axis=1)
    return [Rank(int(a), int(b)) for a, b in zip(first, last, strict=True)]


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def differences_of_all(
    values: Sequence[np.ndarray], *, in_digits: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The mean differences of all pairs of rows of finite values, and their p-values: (n, n) each.

    They are for the small p-values that many pairs ask for; see `all_pairs`. Means of values of one
    sign must differ by their ratio, too, as in `paired.difference`. A p-value is NaN where squares
    of the values are too large.
    """
    means = np.array([row.mean() for row in values])
    mean = means[:, None] - means
    if values[0].shape[1] < 2:
        return mean, np.ones_like(mean)
    p = _p_values(values, np.abs(mean))
    signs = np.zeros(len(values)) if in_digits else np.array([common_sign(row) for row in values])
    for sign in (-1, 1):
        alike = np.flatnonzero(signs == sign)
        if len(alike) > 1:
            ratios = means[alike, None] / means[alike]
            relative = [values[int(i)] / means[i] for i in alike]
            pairs = np.ix_(alike, alike)
            p[pairs] = np.maximum(p[pairs], _p_values(relative, least_distance(ratios)))
    return mean, p


def _p_values(values: Sequence[np.ndarray], size: np.ndarray) -> np.ndarray:
    """The p-values (n, n) of rows whose means are so far apart."""
    of_prompts, rounding = covariances(values)
    seeds = seed_variances(values)
    return p_values(size, of_prompts + rounding, values[0].shape[1], seeds, SIGNIFICANCE)


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


def at_floor(values: np.ndarray, floor_values: np.ndarray) -> bool:
    """Whether digits are those of the floor, less at most one, in the median and the 1% worst."""
    # Of the values themselves: interpolation between infinite digits has no value.
    reached, attainable = (
        np.quantile(digits, [0.5, 0.01], method="lower") for digits in (values, floor_values)
    )
    return bool((reached >= attainable - NEAR_FLOOR).all())
