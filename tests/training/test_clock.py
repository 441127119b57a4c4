"""The clock that budgets are counted with."""

from __future__ import annotations

import time

import pytest
import torch

from iclbench.training.clock import Clock

CPU = torch.device("cpu")


def test_core_time_is_not_wall_time():
    clock = Clock(CPU)
    with clock.running():
        time.sleep(0.05)
    assert clock.wall >= 0.05
    assert clock.core < 0.05
    assert clock.device is None
    assert clock.counted == clock.core


def test_blocks_add_up_and_what_lies_between_is_not_counted(monkeypatch):
    now = iter([1.0, 3.0, 10.0, 10.5])
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    clock = Clock(CPU)
    for _ in range(2):
        with clock.running():
            pass
    assert clock.core == 2.5
    resumed = Clock(CPU)
    resumed.load_state(clock.state())
    assert resumed.counted == 2.5


def test_a_block_that_raises_is_counted(monkeypatch):
    now = iter([1.0, 3.0])
    monkeypatch.setattr(time, "process_time", lambda: next(now))
    clock = Clock(CPU)
    with pytest.raises(ValueError, match="cut"), clock.running():
        raise ValueError("cut")
    assert clock.core == 2.0
