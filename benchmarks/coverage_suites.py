"""Suites on which all models are equal, for `coverage.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iclbench.leaderboards.scale import Score
from iclbench.leaderboards.suite_score import mean_score, suite_rank
from iclbench.runs.intervals import mean_interval

PROMPTS, MODELS = 512, 17
#: Digits at the reference; chance has 0 digits.
REFERENCE = 7.0


@dataclass(frozen=True)
class SuiteScenario:
    """Equal models on boards whose digits have these deviations of seeds."""

    name: str
    of_seeds: tuple[float, ...]


def suite_scenarios() -> list[SuiteScenario]:
    """All the kinds of suites that are simulated."""
    return [
        *(SuiteScenario(f"9 boards, seeds differ by {x} on each", (x,) * 9) for x in (0.1, 0.3)),
        *(
            SuiteScenario(
                f"{count} boards, seeds differ by 0.6 on one and 0.05 elsewhere",
                (0.6, *[0.05] * (count - 1)),
            )
            for count in (9, 3)
        ),
    ]


def has_false_order(scenario: SuiteScenario, random: np.random.Generator, seeds: int) -> bool:
    """Whether the ranks of one table say that a model is better than an equal one."""
    by_board = [_scores(deviation, random, seeds) for deviation in scenario.of_seeds]
    means = [mean_score(scores) for scores in zip(*by_board, strict=True)]
    ranks = [suite_rank(mean, means) for mean in means]
    return any(rank.first > 1 or rank.last < MODELS for rank in ranks)


def _scores(of_seeds: float, random: np.random.Generator, seeds: int) -> list[Score]:
    """The models' scores on a board, on the same prompts."""
    values = 3 + random.standard_normal((1, PROMPTS, 1))
    values = values + of_seeds * random.standard_normal((seeds, 1, MODELS))
    values = values + 0.5 * random.standard_normal((seeds, PROMPTS, MODELS))
    bounds = mean_interval(values, "digits")
    means = values.mean(axis=(0, 1))
    return [
        Score(
            float(mean) / REFERENCE,
            float(low) / REFERENCE if is_reliable else None,
            float(high) / REFERENCE if is_reliable else None,
        )
        for mean, low, high, is_reliable in zip(
            means, bounds.low, bounds.high, bounds.reliable, strict=True
        )
    ]
