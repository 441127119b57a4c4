"""Ranking: the number that a task ranks by, and which direction of it is better."""

from __future__ import annotations

import math
from typing import Literal

from .config import Config
from .digits import Statistic
from .statistics import Statistics


class Ranking(Config):
    """The number that the task ranks by."""

    metric: str
    better: Literal["lower", "higher"]
    statistic: Statistic

    @property
    def scale(self) -> Literal["log", "linear"]:
        """log: compared by log10."""
        return "linear" if self.statistic == "mean" else "log"

    @property
    def has_digits(self) -> bool:
        """Whether the digits of an error rank."""
        return self.statistic == "mean digits"

    @property
    def better_score(self) -> Literal["lower", "higher"]:
        """Which direction of the score is better: digits grow as the error falls."""
        return "higher" if self.has_digits else self.better

    def goodness(self, score: float | None) -> float:
        """The score with a sign that makes more better; −∞ where there is none."""
        if score is None:
            return -math.inf
        return score if self.better_score == "higher" else -score

    def score(self, statistics: Statistics) -> float | None:
        """The number that ranks: the mean digits, or the mean."""
        if self.statistic == "mean":
            return statistics.mean
        return statistics.digits.mean if statistics.digits else None
