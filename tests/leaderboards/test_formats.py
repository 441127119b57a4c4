"""Formats: differences and arguments as text."""

from __future__ import annotations

import numpy as np

from iclbench.leaderboards.formats import arguments, difference
from iclbench.leaderboards.ranking import paired_difference


def test_a_difference_is_in_digits_gained_and_marked_if_significant():
    worse = paired_difference(np.full((1, 50), 1e-2), np.full((1, 50), 1e-4), log=True)
    assert difference(worse, "log") == "-2.00 [-2.00, -2.00] *"
    same = paired_difference(np.ones((1, 50)), np.ones((1, 50)), log=True)
    assert difference(same, "log") == "+0.00 [+0.00, +0.00]"
    linear = paired_difference(np.full((1, 50), 0.5), np.full((1, 50), 0.25), log=False)
    assert difference(linear, "linear") == "+0.25 [+0.25, +0.25] *"


def test_arguments_are_abbreviated():
    values = {"task_seed": 0, "sizes": [2, 3, 4, 9], "noise": None, "order": "any", "x": [0.5]}
    assert arguments(values) == "sizes=2-4,9, order=any, x=[0.5]"
