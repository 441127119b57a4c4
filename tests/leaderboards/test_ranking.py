"""Ranking: paired comparisons, which rows share a rank, and the ranks of the precision page."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench.leaderboards.ranking import Rank, paired_difference, precision_ranks, ranks, resample

rng = np.random.default_rng(0)


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_models_seldom_differ_significantly(seeds):
    wrong = 0
    for _ in range(200):
        prompts = rng.standard_normal((1, 60))
        first, second = (10 ** (rng.standard_normal((seeds, 1)) + prompts) for _ in range(2))
        paired = paired_difference(first, second, log=True)
        wrong += paired.is_significant
    assert wrong <= 18


def test_a_comparison_is_paired():
    """A gain of 0.1 digits on each prompt is significant, although the prompts differ much more."""
    hard = rng.uniform(-12, 0, size=(1, 400))
    first = 10 ** (hard + 0.01 * rng.standard_normal(hard.shape))
    second = 10 ** (hard - 0.1 + 0.01 * rng.standard_normal(hard.shape))
    paired = paired_difference(first, second, log=True)
    assert paired.first_is_higher
    assert paired.mean == pytest.approx(0.1, abs=0.01)
    shuffled = paired_difference(first, rng.permutation(second, axis=1), log=True)
    assert not shuffled.first_is_higher


def test_a_model_does_not_differ_from_itself():
    values = rng.exponential(size=(3, 100))
    for log, same in ((True, values[:1]), (False, values)):
        paired = paired_difference(same, same, log=log)
        assert not paired.first_is_lower
        assert not paired.first_is_higher


@pytest.mark.parametrize("log", [True, False])
def test_rounding_does_not_count(log):
    """Another processor rounds sums differently, which must not decide a rank."""
    values = rng.exponential(size=(1, 100))
    paired = paired_difference(values, values * (1 + 1e-14), log=log)
    assert paired == (0.0, 0.0, 0.0)
    assert paired_difference(values, values * (1 + 1e-9), log=log).first_is_lower


def test_an_infinite_mean_does_not_count_as_rounding():
    values = np.where(np.arange(100) < 40, np.inf, 1.0)[None]
    with np.errstate(over="ignore", invalid="ignore"):
        paired = paired_difference(values, np.ones((1, 100)), log=False)
    assert paired.mean == np.inf


def test_exact_and_infinite_errors_can_be_compared():
    paired = paired_difference(np.zeros((1, 50)), np.full((1, 50), np.nan), log=True)
    assert paired.first_is_lower
    assert paired.mean == -80


def ranked(*rows, better="lower", log=True):
    values = [np.atleast_2d(np.asarray(row, dtype=float)) for row in rows]
    return [str(rank) for rank in ranks(values, [resample(v, log) for v in values], better)]


def test_rows_share_a_rank_unless_they_are_significantly_worse_than_its_first():
    errors = 10 ** rng.standard_normal((1, 200))
    noise = 10 ** (0.2 * rng.standard_normal((1, 200)))
    assert ranked(errors, errors * noise, errors * 10) == ["1=", "1=", "3"]
    assert ranked(errors, errors * 10, errors * 10 * noise) == ["1", "2=", "2="]


def test_ranks_follow_the_direction_of_the_metric():
    scores = rng.standard_normal((1, 200))
    assert ranked(scores, scores - 1, better="higher", log=False) == ["1", "2"]
    assert ranked(scores, scores + 1, better="lower", log=False) == ["1", "2"]
    assert ranked(scores, scores + 1, better="higher", log=False) == ["1=", "1="]


def test_a_row_that_is_not_finite_shares_no_rank_with_one_that_is():
    # One infinite error in 200 is not significant, but it is not finite.
    errors = 10 ** rng.standard_normal((1, 200))
    diverged = errors.copy()
    diverged[0, 0] = np.inf
    assert ranked(errors, diverged, diverged) == ["1", "2=", "2="]


def test_rows_at_the_floor_share_the_first_rank_of_the_precision_page():
    board = [Rank(1), Rank(2, True), Rank(2, True), Rank(4, True), Rank(4, True)]
    at_floor = [True, True, False, False, False]
    assert [str(r) for r in precision_ranks(board, at_floor)] == ["1=", "1=", "3", "4=", "4="]
    assert [str(r) for r in precision_ranks(board, [False] * 5)] == ["1", "2=", "2=", "4=", "4="]
