"""When two numbers agree."""

from __future__ import annotations

import pytest

from iclbench.runs.comparison import DIGITS, NEAR_FLOOR, agree


@pytest.mark.parametrize(
    ("recorded", "measured", "floor", "holds"),
    [
        (1.0, 1.01, 1e-7, False),
        (1e-7, 1.5e-7, 1e-7, True),
        (1e-7, 10 ** (-7 + 1.1 * DIGITS), 1e-7, False),
        (1e-7 * NEAR_FLOOR * 2, 1e-7 * NEAR_FLOOR * 3, 1e-7, False),
        (1e-7, 1.5e-7, float("nan"), False),
        (0.0, 1e-8, 1e-7, False),
    ],
)
def test_the_tolerance_is_as_stated(recorded, measured, floor, holds):
    assert agree(recorded, measured, floor) is holds
