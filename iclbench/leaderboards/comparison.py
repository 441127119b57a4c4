"""The paired comparison of two models on the same prompts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..runs.statistics import resampled_means

#: Errors are compared by their digits between these bounds, so that 0 and ∞ count as very far.
SMALLEST, LARGEST = 1e-40, 1e40

#: Differences below this, beside what is compared, are rounding, which is another on another
#: processor: they are 0, so that they decide no rank.
ROUNDING = 1e-12


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


class Resampled(NamedTuple):
    """A model's mean and its bootstrap, from which it is compared with any other.

    `first` and `second` (resamples,) draw the same prompts; seeds by themselves, so that one
    model's `first` goes with another's `second`.
    """

    mean: float
    first: np.ndarray
    second: np.ndarray


def resample(values: np.ndarray, digits: bool) -> Resampled:
    """The bootstrap of (seeds, prompts) values; with `digits` of their log10."""
    scaled = scale(values, digits)[..., None]
    first = resampled_means(scaled, 0)[:, 0]
    # Where nothing is trained there are no seeds to set apart.
    second = first if len(values) == 1 else resampled_means(scaled, 1)[:, 0]
    return Resampled(float(scaled.mean()), first, second)


def difference(a: Resampled, b: Resampled) -> Difference:
    """a − b."""
    low, high = np.quantile(a.first - b.second, [0.025, 0.975])
    rounding = ROUNDING * max(np.abs(a.first).max(), np.abs(b.second).max())
    found = [float(value) for value in (a.mean - b.mean, low, high)]
    if np.isfinite(rounding):
        found = [0.0 if abs(value) <= rounding else value for value in found]
    return Difference(*found)


def paired_difference(first: np.ndarray, second: np.ndarray, digits: bool) -> Difference:
    """first − second, of (seeds, prompts) values on the same prompts.

    With `digits` it is the difference of log10, which a few bad draws don't decide. Prompts are
    resampled together, each model's seeds by themselves.
    """
    return difference(resample(first, digits), resample(second, digits))


def scale(values: np.ndarray, digits: bool) -> np.ndarray:
    """The values as they are compared; what is not a number counts as very far."""
    if not digits:
        return np.asarray(np.nan_to_num(values))
    bounded = np.where(np.isnan(values), LARGEST, np.clip(values, SMALLEST, LARGEST))
    return np.asarray(np.log10(bounded))
