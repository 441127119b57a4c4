"""The paired comparison of two models on the same prompts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..statistics import resampled_means

#: Errors are compared by their digits between these bounds, so that 0 and ∞ count as very far.
SMALLEST, LARGEST = 1e-40, 1e40


class Difference(NamedTuple):
    """The mean difference over prompts and its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def first_is_lower(self) -> bool:
        """Whether the whole interval is below 0."""
        return self.high < 0.0

    @property
    def first_is_higher(self) -> bool:
        """Whether the whole interval is above 0."""
        return self.low > 0.0


def paired_difference(first: np.ndarray, second: np.ndarray, digits: bool) -> Difference:
    """first − second, of (seeds, prompts) values on the same prompts.

    With `digits` it is the difference of log10, which a few bad draws don't decide. Prompts are
    resampled together, each model's seeds by themselves.
    """
    a, b = (_scaled(values, digits) for values in (first, second))
    resampled = resampled_means(a[..., None], 0) - resampled_means(b[..., None], 1)
    low, high = np.quantile(resampled[:, 0], [0.025, 0.975])
    return Difference(float(a.mean() - b.mean()), float(low), float(high))


def _scaled(values: np.ndarray, digits: bool) -> np.ndarray:
    if not digits:
        return np.asarray(np.nan_to_num(values))
    bounded = np.where(np.isnan(values), LARGEST, np.clip(values, SMALLEST, LARGEST))
    return np.asarray(np.log10(bounded))
