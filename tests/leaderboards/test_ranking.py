"""Ranking: paired tests, intervals of ranks, the floor and chance."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iclbench.api.random import philox
from iclbench.leaderboards.paired import difference
from iclbench.leaderboards.ranking import (
    Rank,
    at_floor,
    best_first,
    differences_of_all,
    holm,
    ranked_values,
    ranks,
)


@pytest.fixture
def rng():
    """Random numbers of a test's own, whichever tests ran before it."""
    return np.random.default_rng(0)


def copies(rows, seeds, prompts=60, *, name="copies"):
    """Digits of one model: rows with seeds of their own, on the same prompts."""
    random = philox(name, rows, seeds)
    values = 3 + random.standard_normal(prompts) + 0.3 * random.standard_normal((rows, seeds, 1))
    return list(values + 0.5 * random.standard_normal((rows, seeds, prompts)))


def written(values, better="higher"):
    return [str(rank) for rank in ranks(values, better, in_digits=True)]


def test_a_rank_is_an_interval():
    assert str(Rank(3, 5)) == "3–5"
    assert str(Rank(3, 3)) == "3"


@pytest.mark.parametrize("seeds", [1, 3])
def test_identical_rows_have_p_1(seeds, rng):
    values = rng.exponential(size=(seeds, 100))
    assert difference(values, values, in_digits=True).p == 1
    assert written([values] * 5) == ["1–5"] * 5


def test_rounding_does_not_decide(rng):
    """Another processor rounds sums differently, which must not decide a rank."""
    for values in (rng.exponential(size=(1, 100)), np.full((1, 100), 0.25)):
        assert written([values, values * (1 + 1e-14)]) == ["1–2", "1–2"]
        assert written([values, values * (1 + 1e-6)]) == ["2", "1"]


def test_differences_near_the_attainable_count_as_none(rng):
    attainable = rng.normal(7, 1, size=300)
    exact, worse = attainable[None], attainable[None] - 0.9
    far = attainable[None] - 1.5
    assert written([exact, worse, far]) == ["1", "2", "3"]
    clipped = [ranked_values(row, attainable) for row in (exact, worse, far)]
    assert written(clipped) == ["1–2", "1–2", "3"]
    assert difference(clipped[0], clipped[1], in_digits=True).p == 1


def test_prompts_without_an_attainable_error_take_the_median_one():
    values = ranked_values(np.full((2, 5), 9.0), np.array([6.0, 7.0, 8.0]))
    assert values.tolist() == [[5.0, 6.0, 7.0, 6.0, 6.0]] * 2
    assert ranked_values(np.full((1, 2), 9.0), np.array([6.0, 7.0, 8.0])).tolist() == [[5.0, 6.0]]


def test_ranks_follow_the_direction_of_the_metric(rng):
    scores = rng.standard_normal((1, 200))
    assert written([scores, scores - 1], "higher") == ["1", "2"]
    assert written([scores, scores - 1], "lower") == ["2", "1"]


def test_ranks_do_not_depend_on_the_order_of_rows():
    values = copies(6, 3)
    values = [row + gain for row, gain in zip(values, (0, 0, 1, 2, 2, 6), strict=True)]
    expected = ranks(values, "higher", in_digits=True)
    assert len(set(expected)) > 2
    for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 37):
        found = ranks([values[i] for i in order], "higher", in_digits=True)
        assert found == [expected[i] for i in order]


def test_ranks_count_the_rows_that_differ():
    values = copies(12, 3, name="counted")
    values = [row + 0.7 * i for i, row in enumerate(values)]
    mean, p = differences_of_all(values, in_digits=True)
    differs = holm(p)
    for row, rank in enumerate(ranks(values, "higher", in_digits=True)):
        better = sum(differs[row] & (mean[row] < 0))
        worse = sum(differs[row] & (mean[row] > 0))
        assert rank == (1 + better, 12 - worse)
        assert rank.first <= rank.last


def test_holm_corrects_over_all_pairs():
    p = np.ones((4, 4))
    for (i, j), value in {(0, 1): 0.008, (0, 2): 0.0095, (0, 3): 0.012, (1, 2): 0.02}.items():
        p[i, j] = p[j, i] = value
    # Six pairs: 0.008 · 6 and 0.0095 · 5 and 0.012 · 4 are below 0.05, 0.02 · 3 is not.
    assert [holm(p)[0, j] for j in (1, 2, 3)] == [True, True, True]
    assert not holm(p)[1, 2]
    p[0, 1] = p[1, 0] = 0.009
    # The smallest of all fails, so all fail.
    assert not holm(p).any()


@pytest.mark.parametrize("heavy", [False, True])
def test_of_twenty_copies_none_is_called_different(heavy):
    wrong = 0
    for i in range(100):
        rows = copies(20, 3, 40, name=f"board {i}")
        values = [np.exp(3 * row) for row in rows] if heavy else rows
        wrong += set(ranks(values, "higher", in_digits=True)) != {Rank(1, 20)}
    assert wrong <= 8


def test_a_row_that_is_not_finite_is_behind_all_that_are():
    values = copies(4, 2)
    values[1] = values[1] + 0.0
    values[1][0, 0] = np.nan
    values[3] = np.full_like(values[3], np.inf)
    assert written(values) == ["1–2", "3–4", "1–2", "3–4"]
    assert np.isnan(difference(values[0], values[1], in_digits=True).p)
    assert written(values[1:2]) == ["1"]
    assert written([values[1], values[3]]) == ["1–2"] * 2
    assert ranks([], "lower", in_digits=True) == []


def test_a_single_prompt_tells_nothing():
    assert written([np.array([[1.0]]), np.array([[2.0]])]) == ["1–2", "1–2"]


def test_rows_are_ordered_by_their_mean_and_then_by_name():
    values = [np.full((1, 3), v) for v in (2.0, 1.0, 2.0, np.nan, np.inf)]
    names = [("b", "1"), ("c", "1"), ("a", "2"), ("z", "1"), ("y", "1")]
    assert best_first(values, names, "lower") == [1, 2, 0, 4, 3]
    assert best_first(values, names, "higher") == [2, 0, 1, 4, 3]


def test_the_floor_is_reached_by_the_median_and_by_the_worst_prompts(rng):
    floor = rng.normal(7, 0.5, size=400)
    values = np.stack([floor - 0.9, floor - 0.5])
    assert at_floor(values, floor)
    assert not at_floor(values - 0.6, floor)
    # A mean of most prompts hides that 2% of them are lost.
    lost = values.copy()
    lost[:, :8] = -1
    assert not at_floor(lost, floor)


def test_numbers_whose_squares_are_too_large_have_no_interval(rng):
    large = [1e200 * rng.standard_normal((2, 20)) for _ in range(3)]
    assert np.isnan(difference(large[0], large[1], in_digits=True).p)
    assert written(large) == ["1–3"] * 3
    larger = [1e80 * rng.standard_normal((2, 20)) for _ in range(2)]
    assert difference(*larger, in_digits=True).mean == pytest.approx((larger[0] - larger[1]).mean())
