"""What a dry run says of the time."""

from __future__ import annotations

import pytest

from iclbench.display.dry_run import total
from iclbench.display.estimate import Estimate


@pytest.mark.parametrize(
    ("seconds", "text"), [([], ""), ([0.1, 0.2], "under 1 s"), ([30.0, 40.0], "about 1 min 10 s")]
)
def test_the_time_of_all_trainings_is_approximate(seconds, text):
    estimates = {str(i): Estimate(steps=1, rate=1 / s, seconds=s) for i, s in enumerate(seconds)}
    assert total(estimates) == text
