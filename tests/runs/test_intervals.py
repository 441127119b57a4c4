"""Intervals: closed forms, coverage, bounds, and when a range stands in for an interval."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from iclbench.api.random import philox
from iclbench.runs.intervals import components, mean_interval


def bounds(values, quantity="metric"):
    """The bounds and the kind of the interval of (seeds, prompts) values."""
    interval = mean_interval(np.asarray(values, dtype=float)[..., None], quantity)
    return interval.low[0], interval.high[0], interval.kind[0]


def test_one_seed_has_student_s_interval_over_prompts():
    values = philox("one seed").standard_normal((1, 40))
    low, high, kind = bounds(values)
    expected = stats.t.interval(0.95, 39, values.mean(), stats.sem(values[0]))
    assert (low, high) == pytest.approx(expected)
    assert kind == "prompts"


def test_the_variance_is_that_of_two_crossed_factors():
    """Written out cell by cell: mean squares of 3 seeds and 4 prompts, and Satterthwaite."""
    values = np.array([[1.0, 2.0, 4.0, 9.0], [2.0, 2.5, 6.0, 8.0], [7.0, 9.0, 9.5, 18.0]])
    grand = values.mean()
    rows, columns = values.mean(axis=1), values.mean(axis=0)
    of_seeds = 4 * sum((r - grand) ** 2 for r in rows) / 2
    of_prompts = 3 * sum((c - grand) ** 2 for c in columns) / 3
    both = sum(
        (values[s, p] - rows[s] - columns[p] + grand) ** 2 for s in range(3) for p in range(4)
    ) / (2 * 3)
    variance = (of_seeds + of_prompts - both) / 12
    freedom = (of_seeds + of_prompts - both) ** 2 / (
        of_seeds**2 / 2 + of_prompts**2 / 3 + both**2 / 6
    )
    result = components(values[..., None]).variance()
    assert [x[0] for x in result] == pytest.approx([variance, freedom])
    banerjee = (
        stats.t.ppf(0.975, 2) ** 2 * (of_seeds - both) + stats.t.ppf(0.975, 3) ** 2 * of_prompts
    ) / 12
    half = math.sqrt(max(stats.t.ppf(0.975, freedom) ** 2 * variance, banerjee))
    # Digits may be negative, so that their interval is symmetric.
    assert bounds(values / 100, "digits")[:2] == pytest.approx(
        ((grand - half) / 100, (grand + half) / 100)
    )


def test_a_component_is_never_negative():
    """Seeds whose means agree, though their values do not, add no variance."""
    values = np.array([[1.0, -1.0] * 20, [-1.0, 1.0] * 20])
    parts = components(values[..., None])
    assert parts.seeds[0] == parts.prompts[0] == parts.both[0] > 0
    assert parts.variance()[0][0] == pytest.approx(parts.both[0] / 80)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("sizes", [(0.0, 1, 1), (0.3, 1, 0.5), (1, 0.3, 0.3)], ids=str)
def test_the_interval_covers_the_mean_as_often_as_it_says(seeds, sizes):
    random = philox("coverage of digits", seeds)
    of_seeds, of_prompts, of_both = (
        size * random.standard_normal((s, p, 1000))
        for size, s, p in zip(sizes, (seeds, 1, seeds), (1, 60, 60), strict=True)
    )
    interval = mean_interval(of_seeds + of_prompts + of_both, "digits")
    holds = (interval.low <= 0) & (interval.high >= 0)
    is_interval = interval.reliable
    assert holds[is_interval].mean() > 0.925
    assert is_interval.mean() > 0.9


@pytest.mark.parametrize("seeds", [1, 3, 5])
def test_a_skewed_error_s_interval_covers_where_it_is_printed(seeds):
    values = np.exp(philox("skewed", seeds).standard_normal((seeds, 400, 500)))
    interval = mean_interval(values, "error")
    holds = (interval.low <= math.exp(0.5)) & (interval.high >= math.exp(0.5))
    assert interval.reliable.mean() > 0.5
    assert holds[interval.reliable].mean() > 0.92


def test_a_heavy_tail_makes_the_mean_unreliable():
    random = philox("heavy")
    heavy = np.exp(3 * random.standard_normal((3, 500, 50)))
    interval = mean_interval(heavy, "error")
    assert not interval.reliable.any()
    assert set(interval.kind) == {"range over seeds"}
    by_seed = heavy.mean(axis=1)
    assert interval.low == pytest.approx(by_seed.min(axis=0))
    assert interval.high == pytest.approx(by_seed.max(axis=0))
    alone = mean_interval(heavy[:1], "error")
    assert set(alone.kind) == {"prompts"}
    assert not alone.reliable.any()
    assert (alone.low < alone.high).all()


@pytest.mark.parametrize("seeds", [1, 3])
def test_one_prompt_that_is_most_of_a_mean_makes_it_unreliable(seeds):
    values = 1 + 0.1 * philox("dominant").standard_normal((seeds, 500, 2))
    values[:, 7] = [[480.0, 520.0]] * seeds
    assert mean_interval(values, "error").reliable.tolist() == [True, False]
    assert mean_interval(-values).reliable.tolist() == [True, False]
    # The digits of the same values are no sum that one of them could dominate.
    assert mean_interval(-np.log10(values), "digits").reliable.all()


def test_a_large_share_of_few_prompts_is_no_dominance():
    values = np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 5.5]])[..., None]
    assert mean_interval(values, "error").reliable[0]


@pytest.mark.parametrize(("quantity", "lost"), [("digits", -3.0), ("error", 1e6)])
def test_a_diverged_seed_leaves_the_range_over_seeds(quantity, lost):
    values = 3 + 0.1 * philox("diverged").standard_normal((3, 50))
    assert bounds(values, quantity)[2] == "seeds and prompts"
    values[1] = lost
    low, high, kind = bounds(values, quantity)
    assert kind == "range over seeds"
    assert lost in (pytest.approx(low), pytest.approx(high))


def test_seeds_that_failed_leave_no_interval_though_no_prompt_is_an_outlier():
    random = philox("gap")
    values = 1e-6 * (1 + 0.1 * random.random((20, 50)))
    values[:4] = 1 + 0.1 * random.random((4, 50))
    assert bounds(values, "error")[2] == "range over seeds"


def test_seeds_at_exactly_0_leave_no_interval_beside_others():
    values = 1 + 0.01 * np.random.default_rng(0).random((5, 200, 1))
    for exact in (1, 2, 4):
        values[:exact] = 0.0
        interval = mean_interval(values)
        assert not interval.reliable[0]
        assert interval.low[0] == 0.0


def test_an_error_s_interval_has_no_negative_bound():
    values = np.array([[1.0, 1.1] * 20, [5.0, 5.1] * 20, [9.0, 9.1] * 20])
    low, high, _ = bounds(values, "error")
    assert 0 < low < 1
    # The symmetric interval would reach from −5 to 15.
    assert high > 15
    assert bounds(-values)[:2] == pytest.approx((-high, -low))


def test_an_interval_that_says_nothing_is_replaced_by_the_range():
    """Two seeds whose errors differ ninefold have an upper bound of 10²² times the mean."""
    assert bounds([[1.0, 1.1] * 20, [9.0, 9.1] * 20], "error")[2] == "range over seeds"


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_fraction_s_interval_stays_within_0_and_1_and_does_not_collapse(seeds):
    for value in (0.0, 1.0):
        low, high, _ = bounds(np.full((seeds, 100), value), "fraction")
        assert 0 <= low < high <= 1
        assert high - low == pytest.approx(3.9 / 104, abs=0.002)
        assert value in (low, high)
    rare = np.zeros((seeds, 100))
    rare[0, 0] = 1
    low, high, _ = bounds(rare, "fraction")
    assert 0 < low < rare.mean() < high < 0.1


def test_a_fraction_of_one_seed_has_wilson_s_interval():
    values = (np.arange(200) < 30).astype(float)[None]
    expected = stats.binomtest(30, 200).proportion_ci(method="wilson")
    assert bounds(values, "fraction")[:2] == pytest.approx(tuple(expected), abs=0.001)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("sigma", [0.5, 3.0])
def test_a_metric_is_a_fraction_by_what_is_known_of_it_and_not_by_its_values(scale, sigma):
    """A negative log-likelihood below 1 has the rule of heavy tails as one above 1 has it."""
    values = scale * np.exp(philox("scaled").normal(0, sigma, size=(3, 400, 1))) / 1e5
    interval, unscaled = mean_interval(values), mean_interval(values / scale)
    assert interval.kind == unscaled.kind
    assert interval.reliable[0] == (sigma < 1)
    assert interval.high[0] == pytest.approx(scale * unscaled.high[0])


def test_values_that_are_not_finite_have_no_interval():
    values = philox("finite").exponential(size=(2, 40, 3))
    values[0, 0, 1] = np.inf
    interval = mean_interval(values)
    assert (
        np.isnan(interval.low).tolist() == np.isnan(interval.high).tolist() == [False, True, False]
    )
    assert interval.kind[1] is None
    assert not interval.reliable[1]


def test_a_single_prompt_has_no_interval():
    assert bounds([[1.0], [2.0]])[2] is None


def test_a_constant_has_an_interval_without_width():
    assert bounds(np.full((3, 20), 5.0)) == (5.0, 5.0, "seeds and prompts")


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_unit_does_not_matter(scale):
    values = philox("unit").exponential(size=(3, 50))
    low, high, _ = bounds(values, "error")
    assert bounds(values * scale, "error")[:2] == pytest.approx((low * scale, high * scale))


def test_a_million_prompts_need_no_more_than_a_few_copies_of_their_values():
    import tracemalloc

    values = philox("many").exponential(size=(1, 10**6, 1))
    tracemalloc.start()
    interval = mean_interval(values, "error")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert interval.low[0] < 1 < interval.high[0]
    assert peak < 10 * values.nbytes


def test_few_heavy_tailed_prompts_overflow_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bounds([[1.0, 1e-6], [31.0, 1e-2]], "error")[2] == "range over seeds"


def test_an_interval_that_reaches_beyond_so_many_means_is_a_range():
    prompts = np.ones(60)
    prompts[7] = 20.0  # the largest value is far above the mean
    values = np.array([1.0, 1.0, 8.0])[:, None] * prompts
    interval = mean_interval(values[..., None], "error")
    assert interval.kind == ["range over seeds"]
    assert not interval.reliable[0]
    assert interval.high[0] == pytest.approx(values.mean(axis=1).max())
