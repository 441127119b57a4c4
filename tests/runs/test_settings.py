"""Settings that no run can use are refused when they are made."""

from __future__ import annotations

import math

import pytest

from iclbench import UsageError
from iclbench.runs.settings import Settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"eval_batch": 0}, "eval_batch=0 is less than 1"),
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds=nan: it must be 0 or more"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds=-1.0: it must be 0 or more"),
        ({"engine": "leading"}, "unknown engine 'leading'"),
        ({"engine": "vmaped"}, "did you mean 'vmapped'"),
    ],
)
def test_values_that_no_run_can_use_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        Settings(**values)
