"""When two numbers agree."""

from __future__ import annotations

import numpy as np
import pytest

from iclbench.runs.comparison import (
    DIGITS,
    INEXACT,
    NEAR_FLOOR,
    NEGLIGIBLE,
    Tolerance,
    agree,
    compare_analyses,
    same,
)


@pytest.mark.parametrize(
    ("recorded", "measured", "floor", "holds"),
    [
        (1.0, 1.01, 1e-7, False),
        (1e-7, 1.5e-7, 1e-7, True),
        (1e-7, 10 ** (-7 + 1.1 * DIGITS), 1e-7, False),
        (1e-7 * NEAR_FLOOR * 2, 1e-7 * NEAR_FLOOR * 3, 1e-7, False),
        (3.458e-4, 3.461e-4, 1e-7, True),
        (3.4e-4, 3.5e-4, 1e-7, False),
        (1e-7, 1.5e-7, float("nan"), False),
        (0.0, 1e-8, 1e-7, False),
    ],
)
def test_the_tolerance_is_as_stated(recorded, measured, floor, holds):
    assert agree(recorded, measured, floor) is holds


def test_a_distance_of_rounding_alone_agrees_and_no_larger_one():
    tolerance = Tolerance("float64", {}, {})
    assert tolerance.holds("ridge_distance", 3.2e-32, 2.2e-32)
    assert not tolerance.holds("ridge_distance", 10 * NEGLIGIBLE, 20 * NEGLIGIBLE)
    # An error is compared with its floor instead.
    assert not Tolerance("float64", {"error": "squared"}, {}).holds("error", 3.2e-32, 2.2e-32)


def test_a_floor_that_is_no_exact_answer_may_move_by_a_hundredth():
    exact, inexact = (Tolerance("float64", {}, {}, further) for further in (0.0, INEXACT))
    assert inexact.holds("squared_error", 1.26312e-20, 1.26753e-20)
    assert not exact.holds("squared_error", 1.26312e-20, 1.26753e-20)
    assert not inexact.holds("squared_error", 1.0e-20, 1.1e-20)
    assert inexact.holds_digits("squared_error", 9.30912, 9.30911)
    assert not inexact.holds_digits("squared_error", 9.32, 9.30)


def test_of_two_mappings_what_differs_is_shown():
    long = {f"argument {i}": i for i in range(40)}
    check = same("spec model_args", long, {**long, "argument 7": 7.0, "taps": 3})
    assert check.difference == (
        'spec model_args: recorded {"argument 7": 7}, computed {"argument 7": 7.0, "taps": 3}'
    )
    assert (
        same("args", {"x": 1}, {"x": 1}).difference == 'args: recorded {"x": 1}, computed {"x": 1}'
    )


@pytest.mark.parametrize(
    ("recorded", "computed"), [(4.0, 4), (True, 1), ({"a": [1.0]}, {"a": [1]})]
)
def test_equal_numbers_of_other_types_are_not_the_same_fact(recorded, computed):
    assert not same("layers", recorded, computed).holds
    assert same("layers", computed, computed).holds


@pytest.mark.parametrize(
    "forged",
    [
        {"attention": [{"title": "learned", "values": [1.0, 2.0]}], "more": []},
        {"attention": [{"title": "perfect", "values": [1.0, 2.0]}]},
        {"attention": [{"title": "learned", "values": [1.0, 2.0], "note": "exact"}]},
        {},
    ],
)
def test_analyses_must_agree_in_their_words_too(forged):
    measured = {"attention": [{"title": "learned", "values": [1.0, 2.00001]}]}
    near = {"attention": [{"title": "learned", "values": [1.0, 2.0]}]}
    assert all(check.holds for check in compare_analyses(near, measured, "float32"))
    assert not all(check.holds for check in compare_analyses(forged, measured, "float32"))


def test_a_statistic_over_an_axis_has_the_tolerance_of_its_largest_floor():
    tolerance = Tolerance("float32", {"e": "absolute"}, {"e": np.array([1e-7, np.nan, 1e-3])})
    assert tolerance.holds("e", 1e-2, 1.5e-2)
    assert tolerance.holds_digits("e", 2.5, 2.55)
    assert not tolerance.holds("e", 1e-2, 1.5e-2, position=0)
