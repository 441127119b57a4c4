"""Parts of a step that threads compute at once give what they give in turn, to the bit."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch
from iclbench.training.grouping import elements
from test_engine import finished, training
from test_replicas import Averaging, Plain, loss, stacked

from iclbench.training import grouping, threads
from iclbench.training.loop import Training
from iclbench.training.threads import map_at_once


@pytest.fixture(autouse=True)
def _cores(monkeypatch):
    """As on a machine of many cores."""
    monkeypatch.setattr(threads, "_places", lambda: 64)


def test_results_are_in_order_and_threads_share_the_cores():
    torch.set_num_threads(4)
    at_once, met = map_at_once(2), threading.Barrier(2)

    def seen(item):
        met.wait(timeout=60)  # both are here: they run at once
        return item, threading.get_ident(), torch.get_num_threads()

    items, idents, cores = zip(*at_once(seen, range(6)), strict=True)
    assert items == tuple(range(6))
    assert len(set(idents)) == 2
    assert threading.get_ident() not in idents
    assert set(cores) == {2}
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize(("cores", "parts"), [(1, 8), (8, 1)])
def test_without_cores_or_parts_to_share_there_are_no_threads(cores, parts):
    torch.set_num_threads(cores)
    assert map_at_once(parts) is map


def test_an_error_is_the_caller_s():
    torch.set_num_threads(2)
    at_once = map_at_once(2)
    with pytest.raises(ZeroDivisionError):
        list(at_once(lambda item: 1 // item, [1, 0, 1]))
    assert list(at_once(abs, [-1, -2, -3])) == [1, 2, 3]


def by_threads(replicas, slices, model, **how) -> Training:
    """A training of replicas by themselves, by two threads where torch has two."""
    made = training(replicas, model, **how)
    made.replicas.stacked, made.replicas.slices = False, slices
    made.replicas.map = map_at_once(replicas * slices)
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("replicas", "slices", "model", "recipe"),
    [
        (1, 4, "transformer", {}),
        (3, 1, "baseconv", {}),
        (3, 2, "transformer", {"accumulate": 3}),
        (3, 1, "transformer", {"autocast": "bfloat16"}),
    ],
)
def test_training_by_threads_is_training_in_turn(replicas, slices, model, recipe, dtype):
    expected = by_threads(replicas, slices, model, dtype=dtype, recipe=recipe)
    assert not expected.replicas.by_threads
    curve = finished(expected).curve
    torch.set_num_threads(2)
    made = by_threads(replicas, slices, model, dtype=dtype, recipe=recipe)
    assert made.replicas.by_threads
    assert finished(made).curve == curve
    assert torch.equal(made.replicas.flat, expected.replicas.flat)
    assert torch.get_num_threads() == 2


def test_a_step_has_one_thread_beside_those_of_its_parts(monkeypatch):
    torch.set_num_threads(2)
    made, seen = by_threads(2, 1, "transformer"), []
    update = type(made.optimizer).update

    def watched(self, by):
        seen.append(torch.get_num_threads())
        update(self, by)

    monkeypatch.setattr(type(made.optimizer), "update", watched)
    made.advance()
    assert set(seen) == {1}


def test_large_replicas_and_slices_are_computed_at_once_and_small_ones_are_not():
    torch.set_num_threads(2)
    assert training(1, recipe={"batch": 8192}).replicas.by_threads
    assert training(4, recipe={"batch": 4096}).replicas.by_threads
    assert not training(1).replicas.by_threads
    assert not training(4).replicas.by_threads


def test_an_optimizer_that_evaluates_the_loss_itself_keeps_all_threads():
    torch.set_num_threads(2)
    values = {"optimizer": "lbfgs", "clip": None, "schedule": "constant", "batch": 8192}
    made = training(1, recipe=values)
    assert made.replicas.slices > 1
    assert not made.replicas.by_threads


class Slow(Averaging):
    """Its parameters have been put in place a while before they are used."""

    def forward(self, prompt):
        time.sleep(0.002)
        return super().forward(prompt)


class Keeping(Plain):
    """It keeps something between two parts of a forward pass."""

    def forward(self, prompt):
        self.kept = prompt.tokens.mean()
        time.sleep(0.002)
        return super().forward(prompt) * self.kept


class Updating(Plain):
    """Its buffer is updated in place, or one of them, and another replaced."""

    replaces = False

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, prompt):
        self.seen.add_(1)
        if self.replaces:
            self.scale = 0.9 * self.scale
        return super().forward(prompt) * (1 + self.seen)


@pytest.mark.parametrize(("cls", "slices"), [(Plain, 1), (Slow, 1), (Keeping, 5), (Updating, 1)])
def test_modules_are_not_mixed_up(cls, slices):
    """Each part has a module of its own, or the template to itself while it is called."""
    _, replicas, batch = stacked(cls, count=6)
    replicas.stacked, replicas.slices = False, slices
    expected = replicas.copy().gradients(batch, loss)
    torch.set_num_threads(4)
    replicas.map = map_at_once(replicas.count * slices)
    for _ in range(3):
        found = replicas.copy().gradients(batch, loss)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_a_module_does_with_its_buffers_is_known_before_threads_start(monkeypatch):
    """A forward pass that has replaced a buffer is taken again; in a trial, not in training."""
    monkeypatch.setattr(Updating, "replaces", True)
    _, replicas, batch = stacked(Updating)
    replicas.stacked = False
    elements(replicas, batch, loss)
    assert not replicas.binds
    replicas.gradients(batch, loss)
    assert replicas.fixed["seen"].tolist() == [1.0, 1.0, 1.0]


def test_a_part_of_an_accumulated_batch_has_no_empty_slices(monkeypatch):
    expected = finished(training(1)).curve
    monkeypatch.setattr(grouping, "SLICE_ELEMENTS", 10)
    made = training(1, recipe={"accumulate": 6})
    assert made.replicas.slices == 1
    made.replicas.slices = 4
    close = pytest.approx(torch.tensor(expected), rel=1e-8)
    assert torch.tensor(finished(made).curve) == close


def test_where_openmp_binds_threads_there_is_no_pool(monkeypatch):
    monkeypatch.undo()
    torch.set_num_threads(2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert map_at_once(2) is map
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert map_at_once(2) is not map


def test_a_pool_that_can_not_start_is_an_error_and_nobody_waits(monkeypatch):
    started, start = [], threading.Thread.start

    def limited(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start"):
        threads._pool(2, 7)  # of a share that no other test asks for
    started[0].join(timeout=60)
    assert not started[0].is_alive()
    assert torch.get_num_threads() == 1


def test_compiled_training_is_not_by_threads(monkeypatch):
    torch.set_num_threads(2)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    made = training(2, recipe={"batch": 8192}, engine="compiled")
    assert made.engine.name == "compiled"
    assert not made.replicas.by_threads
