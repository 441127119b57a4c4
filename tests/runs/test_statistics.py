"""Statistics: quantiles, digits, curves, and nothing hidden."""

from __future__ import annotations

import json

import numpy as np
import pytest

from iclbench.api.digits import digits
from iclbench.api.scoring import Axis
from iclbench.runs.statistics import QUANTILES, as_kept, curve, summarize, summarize_run


@pytest.fixture
def rng():
    """Random numbers of a test's own, whichever tests ran before it."""
    return np.random.default_rng(0)


def test_quantiles_and_mean_are_numpy_s(rng):
    values = rng.exponential(size=(3, 400))
    result = summarize(values)
    assert result.mean == pytest.approx(values.mean())
    assert result.median == pytest.approx(np.median(values))
    for name, q in (("q01", 0.01), ("q05", 0.05), ("q95", 0.95), ("q99", 0.99), ("max", 1)):
        assert getattr(result, name) == pytest.approx(np.quantile(values, q))
    assert result.n == 400


def test_a_quantile_on_a_value_beside_an_infinite_one_is_that_value():
    """Numpy's interpolation adds 0 times the infinite distance between them."""
    values = np.array([[1.0, 2.0, np.inf]])
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.quantile(values, 0.5))
    result = summarize(values)
    assert (result.median, result.q25, result.q75, result.max) == (2.0, 1.5, None, None)
    assert summarize(np.array([[1.0, 2.0, np.nan]]), "squared").median == 2.0


def test_errors_have_the_digits_of_their_prompts(rng):
    values = 10 ** rng.normal(-6, 1, size=(2, 200))
    result = summarize(values, "squared")
    assert result.digits.mean == pytest.approx(digits(values, "squared").mean())
    assert result.digits.low < result.digits.mean < result.digits.high
    assert (result.digits.interval, result.digits.error) == ("seeds and prompts", "squared")
    assert summarize(values, "absolute").digits.mean == pytest.approx(2 * result.digits.mean)
    assert summarize(values).digits is None


def test_a_single_seed_s_interval_says_that_it_is_conditional(rng):
    values = rng.exponential(size=(3, 100))
    summary = summarize_run({"error": values}, {"error": values[0]}, {}, {"error": "absolute"})
    assert summary.metrics["error"].interval == "seeds and prompts"
    assert [seed["error"].interval for seed in summary.seeds] == ["prompts"] * 3
    assert summary.floor["error"].digits.interval == "prompts"
    assert summary.seeds[1]["error"] == summarize(values[1:2], "absolute")


def test_one_seed_s_statistics_are_those_of_the_run(rng):
    summary = summarize_run({"score": rng.standard_normal((1, 50))}, {}, {}, {})
    assert summary.seeds == [summary.metrics]


def test_a_tail_marks_the_mean_as_unreliable_and_leaves_the_digits(rng):
    values = np.exp(4 * rng.standard_normal((3, 300)))
    result = summarize(values, "absolute")
    assert (result.reliable, result.interval) == (False, "range over seeds")
    assert result.digits.interval == "seeds and prompts"


def test_values_that_are_not_finite_are_not_hidden():
    values = np.array([[1.0, 2.0, np.inf, np.nan]])
    result = summarize(values, "squared")
    assert result.mean is None
    assert result.low is None
    assert result.interval is None
    assert not result.reliable
    assert result.q95 is None
    assert result.max is None
    assert result.digits.mean is None
    assert result.q25 == 1.75
    json.dumps(result.model_dump(), allow_nan=False)
    assert summarize(np.array([[1.0, 2.0, 3.0, np.nan, 4.0]]), "absolute").median == 3.0


@pytest.mark.parametrize("kind", ["fraction", None])
def test_nan_among_values_that_are_no_errors_leaves_no_quantile(kind):
    """Whether it is the best or the worst value is unknown: as ∞ it would raise an accuracy."""
    values = np.array([[0.25, 0.5, 0.75, np.nan, 1.0]])
    result = summarize(values, kind)
    assert [getattr(result, name) for name in QUANTILES] == [None] * len(QUANTILES)
    along = curve(
        np.stack([values, np.full_like(values, 0.5)], axis=2), Axis("k", (1.0, 2.0)), kind
    )
    assert (along.median, along.max) == ([None, 0.5], [None, 0.5])


def test_an_axis_is_averaged_for_each_prompt(rng):
    values = rng.standard_normal((2, 50, 3))
    assert summarize(values).median == pytest.approx(np.median(values.mean(axis=2)))


def test_a_curve_has_the_statistics_at_each_value(rng):
    values = rng.standard_normal((2, 50, 3))
    result = curve(values, Axis("prefix", (0.0, 1.0, 2.0)))
    assert result.values == [0, 1, 2]
    for k in range(3):
        alone = summarize(values[:, :, k])
        assert (result.mean[k], result.median[k]) == pytest.approx((alone.mean, alone.median))
        assert (result.low[k], result.high[k]) == pytest.approx((alone.low, alone.high))
        assert (result.interval[k], result.max[k]) == (alone.interval, alone.max)


def test_values_keep_the_precision_of_float32_and_the_range_of_float64(rng):
    values = rng.normal(size=1000)
    np.testing.assert_array_equal(as_kept(values), values.astype(np.float32))
    tiny = values * 2.0**-1000
    np.testing.assert_array_equal(
        as_kept(tiny), values.astype(np.float32).astype(float) * 2.0**-1000
    )
    special = np.array([0.0, 1.0, np.inf, -np.inf, np.nan, 5e-324])
    np.testing.assert_array_equal(as_kept(special), special)
    np.testing.assert_array_equal(as_kept(as_kept(values)), as_kept(values))
