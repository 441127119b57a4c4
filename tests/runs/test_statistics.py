"""Statistics: intervals that cover, seeds and prompts crossed, nothing hidden."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from iclbench.api.task import Axis
from iclbench.runs.statistics import curve, mean_interval, summarize

rng = np.random.default_rng(0)


def test_quantiles_and_mean_are_numpy_s():
    values = rng.exponential(size=(3, 400))
    result = summarize(values)
    assert result.mean == pytest.approx(values.mean())
    assert result.median == pytest.approx(np.median(values))
    assert (result.q05, result.q95) == pytest.approx(tuple(np.quantile(values, [0.05, 0.95])))
    assert result.n == 400


def test_one_seed_s_interval_is_that_of_the_mean_over_prompts():
    values = rng.standard_normal((1, 2000))
    low, high = mean_interval(values[..., None])
    width = 2 * 1.96 * values.std() / math.sqrt(2000)
    assert (high - low)[0] == pytest.approx(width, rel=0.1)


def test_the_interval_holds_the_spread_over_seeds():
    """Effects of 20 seeds with deviation 1 dominate: the half width is t₁₉ · s/√20."""
    values = rng.standard_normal((20, 1)) + 0.01 * rng.standard_normal((20, 500))
    low, high = mean_interval(values[..., None])
    expected = 2 * 2.093 * values.mean(axis=1).std(ddof=1) / math.sqrt(20)
    assert (high - low)[0] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
@pytest.mark.parametrize("weight", [0.0, 1.0, 10.0], ids=lambda w: f"seeds weigh {w}")
def test_the_interval_covers_the_mean_as_often_as_it_says(seeds, weight):
    hits = 0
    for _ in range(200):
        effects = weight * rng.standard_normal((seeds, 1)) + rng.standard_normal((1, 60))
        low, high = mean_interval((effects + rng.standard_normal((seeds, 60)))[..., None])
        hits += low[0] <= 0 <= high[0]
    assert hits >= 182


def test_an_error_s_interval_has_no_negative_bound():
    values = np.array([[1.0, 1.1] * 20, [9.0, 9.1] * 20])
    low, high = mean_interval(values[..., None])
    assert low[0] == 0
    assert high[0] > 9


def test_one_infinite_value_of_the_axis_leaves_the_others_their_interval():
    values = rng.exponential(size=(2, 40, 3))
    values[0, 0, 1] = np.inf
    low, high = mean_interval(values)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [False, True, False]


def test_many_prompts_are_resampled_in_blocks():
    assert summarize(rng.exponential(size=(1, 20_000))).low > 0.98


def test_values_that_are_not_finite_are_not_hidden():
    values = np.array([[1.0, 2.0, np.inf, np.nan]])
    result = summarize(values)
    assert result.mean is None
    assert result.low is None
    assert result.q95 is None
    assert result.q25 == 1.75
    json.dumps(result.model_dump(), allow_nan=False)
    assert summarize(np.array([[1.0, 2.0, 3.0, np.nan, 4.0]])).median == 3.0


def test_an_axis_is_averaged_for_each_prompt():
    values = rng.standard_normal((2, 50, 3))
    assert summarize(values).median == pytest.approx(np.median(values.mean(axis=2)))


def test_a_curve_has_the_statistics_at_each_value():
    values = rng.standard_normal((2, 50, 3))
    result = curve(values, Axis("prefix", (0.0, 1.0, 2.0)))
    assert result.values == [0, 1, 2]
    for k in range(3):
        alone = summarize(values[:, :, k])
        assert (result.mean[k], result.median[k]) == pytest.approx((alone.mean, alone.median))
        assert (result.low[k], result.high[k]) == pytest.approx((alone.low, alone.high))
