"""Paired differences of two rows: their variance, their ratio, and what they are worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from iclbench.api.random import philox
from iclbench.leaderboards.paired import common_sign, difference, least_distance


@pytest.fixture
def rng():
    """Random numbers of a test's own, whichever tests ran before it."""
    return np.random.default_rng(0)


def copies(rows, seeds, prompts=60, *, name="copies"):
    """Digits of one model: rows with seeds of their own, on the same prompts."""
    random = philox(name, rows, seeds)
    values = 3 + random.standard_normal(prompts) + 0.3 * random.standard_normal((rows, seeds, 1))
    return list(values + 0.5 * random.standard_normal((rows, seeds, prompts)))


def test_single_seeds_have_the_paired_t_test(rng):
    first, second = rng.standard_normal((2, 1, 50))
    expected = stats.ttest_rel(first[0], second[0])
    paired = difference(first, second, in_digits=True)
    assert paired.p == pytest.approx(expected.pvalue)
    assert paired[1:3] == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert paired.mean == pytest.approx((first - second).mean())


def test_seeds_without_prompts_that_differ_have_banerjee_s_interval(rng):
    """It is never narrower than Welch's, which trusts few seeds that agree."""
    first, second = rng.standard_normal((4, 1)), 0.3 * rng.standard_normal((6, 1))
    welch = stats.ttest_ind(first[:, 0], second[:, 0], equal_var=False)
    parts = [(len(seeds) - 1, seeds.var(ddof=1) / len(seeds)) for seeds in (first, second)]
    half = np.sqrt(sum(stats.t.ppf(0.975, freedom) ** 2 * part for freedom, part in parts))
    paired = difference(np.repeat(first, 40, axis=1), np.repeat(second, 40, axis=1), in_digits=True)
    assert paired.high - paired.mean == pytest.approx(half, rel=1e-9)
    assert half > welch.confidence_interval(0.95).high - paired.mean
    assert paired.p > welch.pvalue


def test_the_interval_of_a_difference_follows_from_all_its_mean_squares(rng):
    """It is Satterthwaite's or Banerjee's, whichever is wider."""
    rows = rng.standard_normal((2, 4, 6)) + rng.standard_normal((2, 4, 1))
    interactions = [
        ((row - row.mean(axis=1)[:, None] - row.mean(axis=0) + row.mean()) ** 2).sum() / 15 / 24
        for row in rows
    ]
    measured = (rows[0].mean(axis=0) - rows[1].mean(axis=0)).var(ddof=1) / 6
    of_prompts = max(measured, sum(interactions))
    variance, squares = of_prompts, of_prompts**2 / 5
    wide = stats.t.ppf(0.975, 5) ** 2 * of_prompts
    for row, both in zip(rows, interactions, strict=True):
        seeds = max(row.mean(axis=1).var(ddof=1) / 4, both)
        variance += seeds - both
        squares += seeds**2 / 3 + both**2 / 15
        wide += stats.t.ppf(0.975, 3) ** 2 * seeds
    satterthwaite = stats.t.ppf(0.975, variance**2 / squares) * np.sqrt(variance)
    paired = difference(*rows, in_digits=True)
    expected = max(satterthwaite, np.sqrt(wide))
    assert paired.high - paired.mean == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seeds", [2, 3])
def test_few_seeds_that_agree_by_chance_differ_seldom_from_a_solver(seeds):
    """With Satterthwaite's degrees of freedom alone, 117 and 82 of these differed."""
    wrong = 0
    for i in range(1000):
        random = philox("few seeds", i)
        prompts = 3 + random.standard_normal(60)
        model = prompts + 0.3 * random.standard_normal((seeds, 1))
        model = model + 0.3 * random.standard_normal((seeds, 60))
        solver = prompts + 0.3 * random.standard_normal(60)
        wrong += difference(model, solver[None], in_digits=True).is_significant
    assert wrong <= 60


def test_p_is_the_level_at_which_the_interval_begins_to_hold_0(rng):
    """Seeds that agree by chance make no p-value smaller than their own degrees of freedom do."""
    for seeds in (2, 3, 5):
        few = rng.normal(size=(seeds, 1))
        with_prompts = 4 + few + rng.normal(size=(seeds, 64)) * 1e-6
        p = difference(with_prompts, np.zeros((seeds, 64)), in_digits=True).p
        t = (4 + few.mean()) / (few.std(ddof=1) / np.sqrt(seeds))
        assert p == pytest.approx(2 * stats.t.sf(abs(t), seeds - 1), rel=1e-3)


@pytest.mark.parametrize("level", [0.05, 0.01, 0.001])
def test_a_small_p_is_as_rare_as_it_says_where_one_row_s_seeds_differ_more(level):
    rng = np.random.default_rng(0)
    prompts = rng.standard_normal((2000, 1, 64))
    first, second = (
        prompts + deviation * rng.standard_normal((2000, 3, 1)) + rng.standard_normal((2000, 3, 64))
        for deviation in (0.01, 2.0)
    )
    pairs = zip(first, second, strict=True)
    small = sum(difference(*pair, in_digits=True).p < level for pair in pairs)
    assert small <= 2000 * level + 3 * np.sqrt(2000 * level)


def test_a_test_is_two_sided():
    first, second = copies(2, 3)
    forth = difference(first, second, in_digits=True)
    back = difference(second, first, in_digits=True)
    assert forth.p == pytest.approx(back.p)
    assert forth[:3] == pytest.approx((-back.mean, -back.high, -back.low))


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_models_seldom_differ_significantly(seeds):
    pairs = (copies(2, seeds, name=f"pair {i}") for i in range(300))
    wrong = sum(difference(*pair, in_digits=True).is_significant for pair in pairs)
    assert wrong <= 24


def test_a_comparison_is_paired(rng):
    """A gain of 0.1 digits on each prompt is significant, although the prompts differ much more."""
    hard = rng.uniform(0, 12, size=(1, 400))
    first = hard + 0.01 * rng.standard_normal(hard.shape)
    second = hard + 0.1 + 0.01 * rng.standard_normal(hard.shape)
    paired = difference(second, first, in_digits=True)
    assert paired.low > 0
    assert paired.mean == pytest.approx(0.1, abs=0.01)
    assert not difference(rng.permutation(second, axis=1), first, in_digits=True).is_significant


def test_the_prompts_show_at_least_what_seeds_and_prompts_add():
    """Of either row one seed is lost on one prompt: the difference of prompts has no variance."""
    lost = np.full((5, 40), 1e-3)
    lost[0, 7] = 1e6
    paired = difference(lost, lost[::-1] * 1.001, in_digits=False)
    assert paired.low < 0 < paired.high < np.inf
    assert not paired.is_significant


def skewed(random, seeds, deviation, prompts):
    """Mean errors of mean 1: log-normal over prompts and, with this deviation, over seeds."""
    hard = 0.5 * (0.7 * prompts + 0.7 * random.standard_normal(prompts.shape))
    of_seeds = deviation * random.standard_normal((seeds, 1))
    return np.exp(hard + of_seeds - 0.12 - deviation**2 / 2)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_row_that_missed_its_bad_seeds_seldom_beats_a_solver(seeds):
    """By the difference alone, as digits are tested, about a tenth of these would."""
    by_ratio = by_difference = 0
    for i in range(500):
        random = philox("skewed", seeds, i)
        prompts = random.standard_normal((1, 128))
        model, solver = (skewed(random, *of, prompts) for of in ((seeds, 0.7), (1, 0.0)))
        for_errors = difference(model, solver, in_digits=False)
        by_ratio += for_errors.is_significant and for_errors.mean < 0
        by_difference += difference(model, solver, in_digits=True).is_significant
    assert by_ratio <= 30
    assert by_difference >= 35


def test_the_interval_by_ratio_reaches_0_where_its_p_is_the_level(rng):
    for _ in range(50):
        first, second = (
            np.exp(rng.normal(mean, 1, (3, 30)) + rng.normal(0, 0.8, (3, 1))) for mean in (0, 1.5)
        )
        paired = difference(first, second, in_digits=False)
        assert (paired.high < 0 or paired.low > 0) == (paired.p < 0.05)
        back = difference(second, first, in_digits=False)
        assert back.p == pytest.approx(paired.p)
        assert back[:3] == pytest.approx((-paired.mean, -paired.high, -paired.low))
        scaled = difference(1e-9 * first, 1e-9 * second, in_digits=False)
        assert scaled[:3] == pytest.approx([1e-9 * x for x in paired[:3]])
        turned = difference(-first, -second, in_digits=False)
        assert turned[:3] == pytest.approx((-paired.mean, -paired.high, -paired.low))


def test_a_small_relative_difference_is_tested_as_a_difference(rng):
    first, second = 1 + 1e-4 * rng.standard_normal((2, 3, 50))
    by_ratio = difference(first, second, in_digits=False)
    assert by_ratio[:3] == pytest.approx(difference(first, second, in_digits=True)[:3], rel=1e-3)


def test_the_least_distance_solves_its_equation():
    u = np.array([0.0, 1e-6, 0.3, 5.0])
    assert least_distance(np.exp(u + u**2 / 2)) == pytest.approx(u, rel=1e-6, abs=1e-12)
    assert least_distance(np.exp(-u - u**2 / 2)) == pytest.approx(u, rel=1e-6, abs=1e-12)


def test_only_values_of_one_sign_have_one():
    assert common_sign(np.array([[0.0, 2.0]])) == 1
    assert common_sign(np.array([[0.0, -2.0]])) == -1
    assert common_sign(np.array([[1.0, -2.0]])) == common_sign(np.zeros((1, 2))) == 0
