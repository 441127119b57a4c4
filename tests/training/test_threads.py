"""Threads share the cores, keep the order of results, and propagate errors."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from iclbench.training import threads
from iclbench.training.threads import map_at_once


@pytest.fixture(autouse=True)
def _cores(monkeypatch):
    """Simulate a machine with many cores."""
    monkeypatch.setattr(threads, "usable_cores", lambda: 64)


def test_results_are_in_order_and_threads_share_the_cores():
    torch.set_num_threads(4)
    at_once, barrier = map_at_once(2), threading.Barrier(2)

    def observe(item):
        barrier.wait(timeout=60)  # passes only if two threads run at once
        return item, threading.get_ident(), torch.get_num_threads()

    items, idents, cores = zip(*at_once(observe, range(6)), strict=True)
    assert items == tuple(range(6))
    assert len(set(idents)) == 2
    assert threading.get_ident() not in idents
    assert set(cores) == {2}
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize(("cores", "parts"), [(1, 8), (8, 1)])
def test_no_threads_are_used_without_several_cores_and_parts(cores, parts):
    torch.set_num_threads(cores)
    assert map_at_once(parts) is map


def test_errors_reach_the_caller():
    torch.set_num_threads(2)
    at_once = map_at_once(2)
    with pytest.raises(ZeroDivisionError):
        list(at_once(lambda item: 1 // item, [1, 0, 1]))
    assert list(at_once(abs, [-1, -2, -3])) == [1, 2, 3]


def test_no_pool_is_used_if_openmp_binds_threads(monkeypatch):
    monkeypatch.undo()
    torch.set_num_threads(2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert map_at_once(2) is map
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert map_at_once(2) is not map


def test_pool_that_cannot_start_raises_and_leaves_no_thread_waiting(monkeypatch):
    started, start = [], threading.Thread.start

    def limited(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start"):
        threads._pool(2, 7)  # a share that no other test uses, so the pool is new
    started[0].join(timeout=60)
    assert not started[0].is_alive()
    assert torch.get_num_threads() == 1


def test_denormal_numbers_are_zero_in_threads_that_take_steps():
    torch.set_num_threads(2)
    small = torch.tensor([1e-40, 1e-40], dtype=torch.float32)
    at_once = map_at_once(2)
    assert [float(x.mul(1.0)) for x in small] == pytest.approx([1e-40, 1e-40], rel=1e-3)
    assert list(at_once(lambda x: float(x.mul(1.0)), small)) == [0.0, 0.0]
