"""Statistics and Curve: what a record says of a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from .config import Config


class Statistics(Config):
    """A metric over all prompts and seeds; None stands for a number that is not finite."""

    mean: float | None
    median: float | None
    q05: float | None
    q25: float | None
    q75: float | None
    q95: float | None
    low: float | None = Field(description="lower bound of the mean's 95% interval")
    high: float | None = Field(description="upper bound of the mean's 95% interval")
    n: int = Field(description="number of prompts")


class Curve(Config):
    """A metric along its second axis, the statistics at each of its values."""

    axis: str
    values: list[float]
    mean: list[float | None]
    median: list[float | None]
    max: list[float | None] = Field(description="the largest of all prompts and seeds")
    low: list[float | None]
    high: list[float | None]


def finite(value: float | np.floating[Any]) -> float | None:
    """The value as JSON can hold it."""
    return float(value) if np.isfinite(value) else None
