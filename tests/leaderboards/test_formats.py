"""Formats: differences and arguments as text."""

from __future__ import annotations

import numpy as np

from iclbench.leaderboards import ranking
from iclbench.leaderboards.formats import arguments, difference


def test_a_difference_is_in_digits_gained_and_marked_if_significant():
    few, many = np.full((1, 50), 2.0), np.full((1, 50), 4.0)
    assert difference(ranking.difference(few, many), "log") == "-2.00 [-2.00, -2.00] *"
    assert difference(ranking.difference(few, few), "log") == "+0.00 [+0.00, +0.00]"
    linear = ranking.difference(few / 4, few / 8)
    assert difference(linear, "linear") == "+0.25 [+0.25, +0.25] *"


def test_arguments_are_abbreviated():
    values = {"task_seed": 0, "sizes": [2, 3, 4, 9], "noise": None, "order": "any", "x": [0.5]}
    assert arguments(values) == "sizes=2-4,9, order=any, x=[0.5]"
