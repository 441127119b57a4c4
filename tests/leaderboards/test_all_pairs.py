"""The test of a board's pairs: exact in its limits, and right where few seeds agree by chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from iclbench.api.random import philox
from iclbench.leaderboards.all_pairs import SeedVariances, moderated, p_values, seed_variances
from iclbench.leaderboards.ranking import differences_of_all, ranks


def seeds_of(total, freedom, both=0.0):
    total = np.asarray(total, dtype=float)
    return SeedVariances(total, np.full_like(total, both), np.full_like(total, freedom))


def pair_p(size, of_prompts, prompts, seeds):
    sizes = np.array([[0.0, size], [size, 0.0]])
    return p_values(sizes, np.full((2, 2), of_prompts), prompts, seeds)[0, 1]


def test_rows_without_seeds_have_the_paired_t_test():
    p = pair_p(2.5, 1.0, 10, seeds_of([0.0, 0.0], 0))
    assert p == pytest.approx(2 * stats.t.sf(2.5, 9))


def test_pairs_that_prompts_alone_leave_open_are_not_computed():
    rng = philox(1, "pairs")
    size = np.abs(rng.normal(size=(6, 6)) * 2)
    size = np.tril(size, -1) + np.tril(size, -1).T
    seeds = seeds_of(rng.uniform(0, 1, 6), 2)
    exact = p_values(size, np.ones((6, 6)), 50, seeds)
    least = 2 * stats.t.sf(size, 49)
    assert (exact >= least - 1e-12).all()
    skipping = p_values(size, np.ones((6, 6)), 50, seeds, 0.05)
    is_small = least < 0.05
    assert is_small.any()
    assert (skipping[~is_small] == 1).all()
    assert (skipping[is_small] == exact[is_small]).all()


@pytest.mark.parametrize(("size", "freedom"), [(3.0, 1), (30.0, 2), (8.0, 4), (5.0, 9)])
def test_one_row_s_seeds_alone_have_student_s_t(size, freedom):
    """Without prompts that differ, and beside a row whose seeds agree, the test is a t-test."""
    p = pair_p(size, 0.0, 10**9, SeedVariances(
        np.array([1.0, 0.0]), np.zeros(2), np.array([float(freedom), 0.0])))  # fmt: skip
    assert p == pytest.approx(2 * stats.t.sf(size, freedom), rel=0.02)


def test_the_p_value_is_the_mean_over_the_variances_of_both_rows():
    seeds = seeds_of([0.5, 0.5], 2, both=0.1)
    variance, freedom = moderated(seeds)
    assert freedom.tolist() == [2, 2]
    random = philox("test of a board")
    drawn = variance[:, None] * 2 / random.chisquare(2, (2, 400_000))
    error = np.sqrt(0.3 + np.maximum(drawn - 0.1, 0).sum(axis=0))
    expected = 2 * stats.t.sf(4.0 / error, 49).mean()
    assert pair_p(4.0, 0.3, 50, seeds) == pytest.approx(expected, rel=0.03)


def test_the_board_counts_at_most_as_much_as_a_row_s_own_seeds():
    variance, freedom = moderated(seeds_of([1.0] * 9 + [1000.0], 2))
    assert (freedom <= 4).all()
    assert variance[-1] >= 500
    assert (variance[:-1] >= 1).all()


def test_rows_that_vary_alike_share_their_variance():
    random = philox("rows that vary alike")
    shown = random.chisquare(2, 40) / 2
    variance, freedom = moderated(seeds_of(shown, 2))
    assert (freedom == 4).all()
    assert variance == pytest.approx((shown + 2 * variance.mean() - shown.mean()) / 2, rel=0.2)


def test_rows_that_vary_apart_share_as_many_degrees_of_freedom_as_their_spread_says():
    # Logarithms whose variance is that of one common degree of freedom and two of a row's own.
    spread = polygamma(1, 0.5) + polygamma(1, 1.0)
    size = np.sqrt(5 / 6 * spread)  # of six logarithms, whose variance is that of a sample
    _, freedom = moderated(seeds_of(np.exp(np.array([-1, 1] * 3) * size), 2))
    assert freedom == pytest.approx([3] * 6)


def test_fewer_than_five_rows_share_no_variance():
    """Their common variance would add degrees of freedom that nobody has seen."""
    for rows, added in ((2, 0), (4, 0), (5, 2)):
        _, freedom = moderated(seeds_of([1.0] * rows, 2))
        assert (freedom == 2 + added).all()


def test_a_row_without_variance_is_not_taken_at_its_word():
    variance, _ = moderated(seeds_of([0.0, 1.0, 1.1, 0.9], 2))
    assert variance[0] > 0.1


def test_rows_with_fewer_seeds_make_no_other_row_less_certain():
    """What one seed varies is moderated, not the mean of however many a row has."""
    freedom = np.array([9.0, 9.0, *[1.0] * 8])
    variance, _ = moderated(SeedVariances(0.09 / (freedom + 1), np.zeros(10), freedom))
    of_one = variance * (freedom + 1)
    assert of_one == pytest.approx(of_one[0])


def board(random, rows, seeds, of_seeds, prompts=128):
    """Rows equal in distribution: digits with effects of seeds, of prompts and of both."""
    values = random.standard_normal(prompts) + random.standard_normal((rows, 1, prompts))
    values = values + of_seeds[:, None, None] * random.standard_normal((rows, seeds, 1))
    return list(values + 0.5 * random.standard_normal((rows, seeds, prompts)))


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_equal_rows_seldom_differ_although_few_seeds_agree_by_chance(seeds, spread):
    """Deviations of seeds like those of models and prompts; alike in all rows or e-fold apart."""
    random = philox("equal rows", seeds, str(spread))
    boards = 60
    wrong = 0
    for _ in range(boards):
        of_seeds = 0.2 * np.exp(spread * random.standard_normal(10))
        found = ranks(board(random, 10, seeds, of_seeds), "higher", in_digits=True)
        wrong += any(rank.first > 1 or rank.last < 10 for rank in found)
    # 5% of 60 boards are 3; more than 9 of them have a probability of 0.1%.
    assert wrong <= 9


def test_five_seeds_see_large_differences():
    values = board(philox("differences"), 10, 5, np.full(10, 0.2))
    values = [row + 3 * (i < 5) for i, row in enumerate(values)]
    found = ranks(values, "higher", in_digits=True)
    assert [str(rank) for rank in found] == ["1–5"] * 5 + ["6–10"] * 5


def test_variances_of_seeds_include_those_of_seeds_and_prompts():
    values = board(philox("variances"), 4, 3, np.full(4, 0.3))
    seeds = seed_variances(values)
    by_seed = np.array([row.mean(axis=1).var(ddof=1) / 3 for row in values])
    assert seeds.total == pytest.approx(np.maximum(by_seed, seeds.both))
    assert seeds.freedom.tolist() == [2, 2, 2, 2]
    mean, p = differences_of_all(values, in_digits=True)
    assert mean == pytest.approx(-mean.T)
    assert p == pytest.approx(p.T)


def test_no_row_varies_less_than_the_median_row():
    total = np.array([1e-6, 0.5, 1.0, 4.0, 0.0])
    seeds = SeedVariances(total, np.zeros(5), np.array([2.0, 2.0, 2.0, 2.0, 0.0]))
    variances, freedom = moderated(seeds)
    assert variances[:4].min() >= 0.75
    # A row with one seed has no variance of seeds.
    assert (variances[4], freedom[4]) == (0.0, 0.0)


def test_seeds_of_two_kinds_do_not_make_equal_rows_differ():
    """Half of the seeds make a transition of one digit: all three of a row often are of a kind."""
    random = np.random.default_rng(0)
    clean = 0
    for _ in range(200):
        seeds = random.integers(0, 2, (5, 3, 1)) + 0.1 * random.standard_normal((5, 3, 1))
        prompts = random.standard_normal((1, 1, 128))
        values = seeds + prompts + 0.5 * random.standard_normal((5, 3, 128))
        clean += set(ranks(list(values), "higher", in_digits=True)) == {(1, 5)}
    assert clean >= 180
