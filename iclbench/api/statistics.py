"""Statistics, Digits and Curve: a metric in a record."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from .config import Config
from .digits import ErrorKind
from .names import Label

#: What the bounds of a mean are: a 95% interval for other seeds and prompts, one for other prompts
#: and the same model, or the lowest and highest seed where no interval can be trusted.
IntervalKind = Literal["seeds and prompts", "prompts", "range over seeds"]


class Digits(Config):
    """The mean digits of an error over prompts and seeds; None stands for what is not finite."""

    mean: float | None
    low: float | None = Field(description="lower bound of the mean digits")
    high: float | None = Field(description="upper bound of the mean digits")
    interval: IntervalKind | None = Field(description="what low and high are; null for none")
    error: ErrorKind = Field(description="whether the metric is an absolute or a squared error")


class Statistics(Config):
    """A metric over all prompts and seeds, in its unit; None stands for what is not finite."""

    mean: float | None
    median: float | None
    q01: float | None
    q05: float | None
    q25: float | None
    q75: float | None
    q95: float | None
    q99: float | None
    max: float | None
    low: float | None = Field(description="lower bound of the mean")
    high: float | None = Field(description="upper bound of the mean")
    interval: IntervalKind | None = Field(description="what low and high are; null for none")
    reliable: bool = Field(
        description="false where few prompts or a failed seed make its 95% interval unreliable"
    )
    n: int = Field(description="number of prompts")
    digits: Digits | None = Field(None, description="the digits, where the metric is an error")


class Curve(Config):
    """A metric along its second axis: the statistics at each of the axis's values."""

    axis: Label
    values: list[float]
    mean: list[float | None]
    median: list[float | None]
    max: list[float | None] = Field(description="the largest over all prompts and seeds")
    low: list[float | None]
    high: list[float | None]
    interval: list[IntervalKind | None] = Field(description="what low and high are at each value")


def finite(value: float | np.floating[Any]) -> float | None:
    """The value as JSON holds it: None if it is not finite."""
    return float(value) if np.isfinite(value) else None
