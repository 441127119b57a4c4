"""Digits: the one definition of how precise an error is."""

from __future__ import annotations

from typing import Literal

import numpy as np

#: What a metric that is an error measures: the square of a distance, or the distance.
ErrorKind = Literal["squared", "absolute"]
#: The statistic that ranks rows: of the digits of every prompt, or of the metric itself.
Statistic = Literal["mean digits", "mean"]
#: What is known of a metric's values: they are errors, or fractions from 0 to 1.
MetricKind = Literal["squared", "absolute", "fraction"]


def digits(values: np.ndarray, kind: ErrorKind) -> np.ndarray:
    """The digits of errors: −log₁₀ of the absolute error, half of −log₁₀ of a squared one.

    float32 ends near 7 digits and float64 near 16. An error of 0 has ∞ digits; one that is not
    finite, or is below 0 and so no error, has −∞.
    """
    errors = np.where(values >= 0, values, np.inf)
    with np.errstate(divide="ignore"):
        result = -np.log10(errors)
    return np.asarray(result / 2 if kind == "squared" else result)
