"""Which trial a search chooses."""

from __future__ import annotations

import pytest

from iclbench.api.random import philox
from iclbench.api.ranking import Ranking
from iclbench.api.tuning import Trial, best_trial, fraction_noise, own_or_best

DIGITS = Ranking(metric="squared_error", statistic="mean digits", better="lower")
ACCURACY = Ranking(metric="accuracy", statistic="mean", better="higher")
MEAN = Ranking(metric="nll", statistic="mean", better="lower")


def trials(*scores):
    return tuple(
        Trial(model_args={}, recipe_args={}, score=score, run="0" * 16, steps=1) for score in scores
    )


@pytest.mark.parametrize(
    ("ranking", "scores", "best", "chosen"),
    [
        (DIGITS, (-0.07, -0.03, -0.05), 1, 0),
        (DIGITS, (-0.07, 0.2, -0.05), 1, 1),
        (DIGITS, (0.5, 0.2, 0.4), 0, 0),
        (MEAN, (1.62, 1.60, 1.61), 1, 0),
        (MEAN, (1.62, 1.20, 1.61), 1, 1),
        (MEAN, (-2.0, -2.05), 1, 0),
        (DIGITS, (None, -0.03, -0.05), 1, 1),
        (DIGITS, (None, None), None, None),
    ],
)
def test_the_recipe_s_own_settings_are_kept_unless_others_are_clearly_better(
    ranking, scores, best, chosen
):
    """Trials at chance differ by noise, and what noise chooses may fail for good."""
    assert best_trial(trials(*scores), ranking) == best
    assert own_or_best(trials(*scores), ranking) == chosen


@pytest.mark.parametrize(("accuracy", "prompts"), [(0.05, 1024), (0.01, 64), (0.5, 128)])
def test_noise_of_fractions_chooses_no_settings(accuracy, prompts):
    """12 trials that learned nothing."""
    draws, chosen = philox("trials"), []
    for _ in range(300):
        scores = draws.binomial(prompts, accuracy, 12) / prompts
        chosen.append(own_or_best(trials(*scores), ACCURACY, prompts))
    assert sum(index != 0 for index in chosen) / 300 < 0.1


def test_a_fraction_that_is_clearly_better_is_chosen():
    assert own_or_best(trials(0.05, 0.06, 0.1), ACCURACY, 1024) == 2
    assert own_or_best(trials(0.05, 0.06, 0.065), ACCURACY) == 2
    assert own_or_best(trials(0.05, 0.06, 0.065), ACCURACY, 1024) == 0


def test_noise_is_known_of_fractions_alone():
    assert fraction_noise(0.5, 1600) == pytest.approx(0.05)
    assert fraction_noise(1.7, 900) == fraction_noise(-0.2, 900) == 0.0
