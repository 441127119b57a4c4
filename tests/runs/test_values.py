"""When the values of all prompts agree with those measured again."""

from __future__ import annotations

import numpy as np

from iclbench.runs.values import Arithmetic, _strays, compare_values


def test_errors_near_the_floor_that_belong_to_other_prompts_are_noticed():
    errors = np.linspace(1e-7, 5e-7, 50)[None]
    arithmetic = Arithmetic("float32", {"e": "absolute"}, 1.0, {"e": errors[0]})
    for recorded, differing in ((errors, []), (errors[:, ::-1], ["e in order"])):
        checks = compare_values("", {"e": recorded}, {"e": errors}, arithmetic)
        assert [check.name for check in checks if not check.holds] == differing


def test_of_few_values_none_may_differ():
    assert [_strays(count) for count in (100, 101, 2000, 5000)] == [0, 2, 2, 5]


def test_values_near_the_floor_may_move_in_their_places_as_far_as_rounding_moves_them():
    """Many similar values: sorted they agree, though each moves by half a percent."""
    errors = 1e-7 * (1 + np.linspace(0, 0.01, 2000))[None]
    arithmetic = Arithmetic("float32", {"e": "absolute"}, 1.0, {"e": errors[0]})
    shift = np.random.default_rng(0).permutation(2000)
    moved = np.where(shift < 1000, errors, errors[:, ::-1])
    spread = {"e": np.full(errors.shape, 2e-9)}

    def out_of_order(spread):
        checks = compare_values("", {"e": moved}, {"e": errors}, arithmetic, spread)
        return [check.name for check in checks if not check.holds]

    assert out_of_order(None) == ["e in order"]
    assert out_of_order(spread) == []
    assert out_of_order({"e": np.full(errors.shape, 1e-12)}) == ["e in order"]
