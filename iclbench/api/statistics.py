"""Statistics and Curve: a metric in a record."""

from __future__ import annotations

from typing import Any

import numpy as np
from pydantic import Field

from .config import Config


class Statistics(Config):
    """A metric over all prompts and seeds, in its unit; None stands for what is not finite."""

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
    """A metric along its second axis: the statistics at each of the axis's values."""

    axis: str
    values: list[float]
    mean: list[float | None]
    median: list[float | None]
    max: list[float | None] = Field(description="the largest over all prompts and seeds")
    low: list[float | None]
    high: list[float | None]


def finite(value: float | np.floating[Any]) -> float | None:
    """The value as JSON holds it: None if it is not finite."""
    return float(value) if np.isfinite(value) else None
