"""The order of records that no sweep gives."""

from __future__ import annotations

from iclbench.leaderboards.figures.order import _natural


def test_numbers_are_in_the_order_of_their_size():
    values = [10, 2, -1, -10, 0.5, -0.25]
    ordered = sorted(values, key=lambda value: _natural({"scale": value}))
    assert ordered == sorted(values)


def test_a_hyphen_in_a_name_is_no_sign():
    names = ["model-10", "model-2"]
    assert sorted(names, key=_natural) == ["model-2", "model-10"]
