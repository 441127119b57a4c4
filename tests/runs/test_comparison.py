"""When two numbers agree."""

from __future__ import annotations

import pytest

from iclbench.runs.comparison import DIGITS, NEAR_FLOOR, agree


@pytest.mark.parametrize(
    ("recorded", "measured", "floor", "holds"),
    [
        (1.0, 1.0005, None, True),
        (1.0, 1.01, None, False),
        (1.0, 1.01, 1e-13, False),
        (1e-13, 2e-13, 1e-13, True),
        (1e-13, 10 ** (-13 + 1.1 * DIGITS), 1e-13, False),
        (1e-13 * NEAR_FLOOR * 2, 1e-13 * NEAR_FLOOR * 3, 1e-13, False),
        (None, None, None, True),
        (1.0, None, None, False),
        (0.0, 0.0, 0.0, True),
        (0.0, 1.0, 0.0, False),
    ],
)
def test_the_tolerance_is_as_stated(recorded, measured, floor, holds):
    assert agree(recorded, measured, floor, 1e-3) is holds
