"""Solvers of recall tasks: what they refuse."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run


def test_a_single_read_out_is_no_pair(tmp_path):
    args = {"tokens": 1, "length": 15}
    with pytest.raises(UsageError, match="pairs of ids"):
        run(model="context-guess", task="selective-copying", task_args=args, out=tmp_path)
