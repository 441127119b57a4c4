"""Settings that no run can use are refused when they are made."""

from __future__ import annotations

import math

import pytest

from iclbench import UsageError
from iclbench.runs.settings import Settings


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"eval_batch": 0}, "eval_batch=0 is not a whole number from 1 on"),
        ({"eval_batch": "3"}, "eval_batch='3' is not a whole number from 1 on"),
        ({"eval_batch": 2.5}, "eval_batch=2.5 is not a whole number from 1 on"),
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds=nan is not a number from 0 on"),
        ({"checkpoint_seconds": -1.0}, "checkpoint_seconds=-1.0 is not a number from 0 on"),
        ({"engine": "leading"}, "unknown engine 'leading'"),
        ({"engine": "vmaped"}, "did you mean 'vmapped'"),
    ],
)
def test_values_that_no_run_can_use_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        Settings(**values)
