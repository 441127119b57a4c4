"""Suites on which all models are equal, for `coverage.py`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iclbench.leaderboards.scale import Score, half_width, skewed_score
from iclbench.leaderboards.suite_means import suite_ranks
from iclbench.runs.intervals import mean_interval

PROMPTS, MODELS = 512, 17
#: Digits at the reference; chance has 0 digits.
REFERENCE = 7.0


@dataclass(frozen=True)
class SuiteScenario:
    """Equal models on boards whose digits have these deviations of seeds.

    On the first board, each seed also has `better` more digits with the probability `share`. Where
    `in_errors`, mean errors rank, whose natural logarithms have these deviations.
    """

    name: str
    of_seeds: tuple[float, ...]
    share: float = 0.0
    better: float = 0.0
    in_errors: bool = False


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
        *(
            SuiteScenario(
                f"{count} boards, half of the seeds 2 digits better on one",
                (0.03,) * count,
                0.5,
                2.0,
            )
            for count in (9, 3)
        ),
        SuiteScenario("9 boards, 1 of 5 seeds 2 digits worse on one", (0.03,) * 9, 0.2, -2.0),
        *(
            SuiteScenario(
                f"9 boards of mean errors, seeds log-normal, σ = {x}", (x,) * 9, in_errors=True
            )
            for x in (0.3, 0.7)
        ),
    ]


def has_false_order(scenario: SuiteScenario, random: np.random.Generator, seeds: int) -> bool:
    """Whether the ranks of one table say that a model is better than an equal one."""
    by_board = []
    for board, deviation in enumerate(scenario.of_seeds):
        of_seeds = deviation * random.standard_normal((seeds, MODELS))
        if board == 0 and scenario.share:
            of_seeds += scenario.better * (random.random((seeds, MODELS)) < scenario.share)
        scores = _scores_of_errors if scenario.in_errors else _scores
        by_board.append(scores(of_seeds, random))
    ranks = suite_ranks(list(zip(*by_board, strict=True)))
    return any(rank.first > 1 or rank.last < MODELS for rank in ranks)


def _scores(of_seeds: np.ndarray, random: np.random.Generator) -> list[Score]:
    """The models' scores on a board, on the same prompts; `of_seeds` is (seeds, models)."""
    values = 3 + random.standard_normal((1, PROMPTS, 1)) + of_seeds[:, None]
    values = values + 0.5 * random.standard_normal((len(of_seeds), PROMPTS, MODELS))
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


def _scores_of_errors(of_seeds: np.ndarray, random: np.random.Generator) -> list[Score]:
    """The scores of mean errors between those of chance, 1, and of the reference, 0.1."""
    chance, reference, hard = np.exp(0.5 * random.standard_normal((3, PROMPTS)) - 0.125)
    reference *= 0.1
    scores = []
    for model in of_seeds.T:
        own = 0.5 * random.standard_normal((len(model), PROMPTS)) - 0.125
        values = 0.5 * hard * np.exp(model[:, None] + own)
        scores.append(_score(values, chance, reference))
    return scores


def _score(values: np.ndarray, chance: np.ndarray, reference: np.ndarray) -> Score:
    """The score of (seeds, prompts) errors, as `Scale.score` makes it."""
    zero, length = float(chance.mean()), float((reference - chance).mean())
    score = (float(values.mean()) - zero) / length
    bounds = mean_interval(values[:, :, None], "error")
    if not bounds.reliable[0]:
        return Score(score, None, None)
    of_level = ((bounds.high[0] - zero) / length, (bounds.low[0] - zero) / length)
    half = half_width(score, values, chance, reference)
    return skewed_score(score, of_level, half, -zero / length)
