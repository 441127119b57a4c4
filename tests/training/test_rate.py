"""The rate of a training, measured on a trial."""

from __future__ import annotations

import time

import pytest
import torch
from small import ADAPTIVE, training

from iclbench.training.rate import measure_rate


@pytest.fixture
def clock(monkeypatch):
    """A clock on which each chunk takes two seconds."""
    now = iter(range(0, 10_000, 2))
    monkeypatch.setattr(time, "process_time", lambda: float(next(now)))


@pytest.mark.parametrize("seeds", [[1], [1, 2, 3]])
def test_the_rate_is_that_of_a_seed_and_its_share_of_the_cores(clock, seeds):
    trial = training(seeds, steps=10**9)
    assert measure_rate(trial, 5.0) == pytest.approx(len(seeds) * 5 / 2)
    assert trial.step == 5 * (1 + 3)


def test_at_least_one_chunk_is_timed(clock):
    trial = training([1], steps=10**9)
    assert measure_rate(trial, 0.0) == pytest.approx(2.5)


def test_the_global_generator_and_the_measuring_of_the_adaptive_schedule_are_left_alone(clock):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    trial = training([1], **ADAPTIVE, steps=10**9)
    streams = [generator.get_state() for generator in trial.measuring]
    torch.set_rng_state(before)
    measure_rate(trial, 20.0)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, g.get_state()) for a, g in zip(streams, trial.measuring, strict=True))
