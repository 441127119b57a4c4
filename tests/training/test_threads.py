"""Parts of a step that threads compute at once give what they give in turn, to the bit."""

from __future__ import annotations

import threading

import pytest
import torch
from test_engine import finished, training
from test_replicas import CPU, Averaging, Plain, loss, stacked

from iclbench.training.loop import Training
from iclbench.training.replicas import Replicas
from iclbench.training.threads import map_at_once


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


@pytest.mark.parametrize("cls", [Plain, Averaging])
def test_modules_that_put_tensors_elsewhere_are_not_mixed_up(cls):
    """The template is then called with a replica's parameters, by one thread at a time."""
    _, replicas, batch = stacked(cls)
    replicas.stacked = False
    expected = [replicas.copy().gradients(batch, loss) for _ in range(3)]
    torch.set_num_threads(4)
    made = replicas.copy()
    assert isinstance(made, Replicas)
    assert made.flat.device == CPU
    made.map = map_at_once(replicas.count)
    for value, grad in expected:
        other = made.copy()
        values, grads = other.gradients(batch, loss)
        assert torch.equal(values, value)
        assert torch.equal(grads, grad)
