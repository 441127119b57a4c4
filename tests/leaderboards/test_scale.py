"""Scores on a board's scale: their intervals, where the scale itself differs between prompts."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench import run
from iclbench.leaderboards.scale import Scale, half_width, skewed_score
from iclbench.runs.intervals import components, mean_interval


def _board(rng, prompts=256, seeds=3):
    """Levels of a model, chance and reference that share how hard a prompt is, log-normal."""
    hard = rng.lognormal(0.0, 1.0, prompts)
    chance, reference = 2 * hard, hard + 0.1 * rng.standard_normal(prompts)
    of_seeds = 0.02 * rng.standard_normal((seeds, 1))
    levels = 1.6 * hard + of_seeds + 0.2 * rng.standard_normal((seeds, prompts))
    return levels, chance, reference


def test_an_interval_covers_the_score_on_other_prompts():
    """The true score is (2 − 1.6) / (2 − 1); how hard prompts are cancels in it."""
    rng, covered, widths = np.random.default_rng(0), 0, []
    for _ in range(400):
        levels, chance, reference = _board(rng)
        length = (reference - chance).mean()
        score = (levels.mean() - chance.mean()) / length
        half = half_width(score, levels, chance, reference)
        covered += abs(score - 0.4) <= half
        widths.append(half * abs(length) / components(levels[:, :, None]).half_width()[0])
    assert 0.93 <= covered / 400 <= 1.0
    assert np.median(widths) < 0.6, "chance and reference vary with the level"


def test_a_level_that_ignores_prompts_is_no_surer_than_the_scale():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        _, chance, reference = _board(rng)
        constant = np.full((1, len(chance)), 3.0)
        score = (3.0 - chance.mean()) / (reference - chance).mean()
        true = (3.0 - 2 * np.exp(0.5)) / -np.exp(0.5)
        covered += abs(score - true) <= half_width(score, constant, chance, reference)
    assert covered / 400 > 0.9


def test_fractions_without_any_spread_are_not_sure(tmp_path):
    """64 right answers of 64 may be 99% of all."""
    record = run(model="lookup", task="mqar", eval_prompts=64, out=tmp_path)
    assert record.metrics["accuracy"].mean == 1.0
    ones = np.ones(64)
    scale = Scale(0.0, 1.0, by_prompt=(np.zeros(64), ones))
    score = scale.score(record)
    assert (score.value, score.high) == (1.0, 1.0)
    assert score.low == pytest.approx(record.metrics["accuracy"].low)
    assert score.low < 0.96


def test_chance_and_reference_have_their_places_for_sure():
    _, chance, reference = _board(np.random.default_rng(2))
    assert half_width(0.0, chance[None], chance, reference) == 0.0
    assert half_width(1.0, reference[None], chance, reference) == 0.0


@pytest.mark.parametrize("seeds", [3, 5])
def test_the_interval_of_skewed_errors_covers_the_score(seeds):
    """Half the symmetric width alone would cover less than 93% of these."""
    rng = np.random.default_rng(seeds)
    covered = symmetric = trusted = 0
    for _ in range(500):
        by_prompt = 0.5 * rng.standard_normal((3, 256)) - 0.125
        chance, reference, hard = np.exp(by_prompt) * np.array([[1.0], [0.1], [0.5]])
        levels = hard * np.exp(0.7 * rng.standard_normal((seeds, 1)) - 0.245)
        interval = mean_interval(levels[..., None], "error")
        if not interval.reliable[0]:
            continue
        trusted += 1
        length = (reference - chance).mean()
        score = (levels.mean() - chance.mean()) / length
        of_level = [(b[0] - chance.mean()) / length for b in (interval.high, interval.low)]
        half = half_width(score, levels, chance, reference)
        found = skewed_score(score, tuple(of_level), half, -chance.mean() / length)
        covered += found.low <= 0.5 / 0.9 <= found.high
        symmetric += abs(score - 0.5 / 0.9) <= half
    assert trusted > 450
    assert covered / trusted > 0.93
    assert symmetric / trusted < 0.93


def test_no_score_is_beyond_that_of_a_level_of_0():
    assert skewed_score(0.9, (0.5, 1.0), 0.4, 1.1) == (
        0.9,
        0.5,
        1.1,
    )  # lower levels are better
    assert skewed_score(0.1, (0.0, 0.3), 0.4, -0.2) == (0.1, -0.2, 0.5)
