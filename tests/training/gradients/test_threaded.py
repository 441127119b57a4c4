"""Threads give the same bits as computing the parts in turn."""

from __future__ import annotations

import pytest
import torch
from toys import Counting, Keeping, Slow, Small, Updating, context, loss, stacked
from trainings import AGREE, finished, losses_differ_by, new_training

from iclbench.training import threads
from iclbench.training.gradients import capacity
from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.threads import map_at_once


@pytest.fixture(autouse=True)
def _cores(monkeypatch):
    """Simulate a machine with many cores."""
    monkeypatch.setattr(threads, "_usable_cores", lambda: 64)


@pytest.mark.parametrize("slices", [1, 2, 4, 9])
@pytest.mark.parametrize("count", [1, 3])
def test_slices_give_the_gradient_of_the_batch(slices, count):
    """Slices may differ in size, and there are at most as many as prompts, 5."""
    _, replicas, batch = stacked(Small, count)
    program = Threaded(replicas, loss, context(), slices=slices)
    torch.testing.assert_close(program(batch), Plain(replicas, loss)(batch))


@pytest.mark.parametrize(
    ("cls", "slices"), [(Small, 1), (Slow, 1), (Keeping, 5), (Updating, 1), (Counting, 1)]
)
def test_threads_do_not_mix_up_modules(cls, slices):
    _, replicas, batch = stacked(cls, count=6)
    in_turn = Threaded(replicas.copy(), loss, context(), slices=slices)
    torch.set_num_threads(4)
    at_once = map_at_once(6 * slices)
    program = Threaded(replicas.copy(), loss, context(), slices=slices, map_parts=at_once)
    for _ in range(3):
        assert all(torch.equal(a, b) for a, b in zip(program(batch), in_turn(batch), strict=True))


def threaded(replicas, monkeypatch, slices=1, **options):
    """Return a training by the threaded program, with batches in slices."""
    monkeypatch.setattr("iclbench.training.gradients.choice.cpu_slices", lambda *_: slices)
    training = new_training(replicas, engine="threaded", **options)
    assert training.engine == "threaded"
    assert training.choice.how.slices == slices
    return training


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
def test_training_by_threads_equals_training_in_turn(
    replicas, slices, model, recipe, dtype, monkeypatch
):
    options = {"slices": slices, "model": model, "recipe": recipe, "dtype": dtype}
    expected = threaded(replicas, monkeypatch, **options)
    assert not expected.choice.how.by_threads
    curve = finished(expected).curve
    torch.set_num_threads(2)
    training = threaded(replicas, monkeypatch, **options)
    assert training.choice.how.by_threads
    assert finished(training).curve == curve
    assert torch.equal(training.replicas.flat, expected.replicas.flat)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_training_in_slices_matches_plain(model, replicas, monkeypatch):
    training = threaded(replicas, monkeypatch, slices=4, model=model)
    plain = new_training(replicas, model=model, engine="plain")
    assert losses_differ_by(training, plain) < AGREE


def test_optimizer_runs_with_one_thread(monkeypatch):
    torch.set_num_threads(2)
    training, thread_counts = threaded(2, monkeypatch), []
    update = type(training.optimizer).update

    def spy(self, by):
        thread_counts.append(torch.get_num_threads())
        update(self, by)

    monkeypatch.setattr(type(training.optimizer), "update", spy)
    training.advance()
    assert set(thread_counts) == {1}


def test_only_large_replicas_and_slices_use_threads():
    torch.set_num_threads(2)
    assert new_training(1, recipe={"batch": 8192}).choice.how.by_threads
    assert new_training(4, recipe={"batch": 4096}).choice.how.by_threads
    assert not new_training(1).choice.how.by_threads
    assert not new_training(4).choice.how.by_threads


def test_optimizer_that_evaluates_the_loss_keeps_all_threads():
    torch.set_num_threads(2)
    values = {"optimizer": "lbfgs", "clip": None, "schedule": "constant", "batch": 8192}
    training = new_training(1, recipe=values)
    assert training.choice.how.slices > 1
    assert not training.choice.how.by_threads


def test_accumulated_batch_has_no_empty_slices(monkeypatch):
    expected = new_training(1)
    monkeypatch.setattr(capacity, "SLICE_ELEMENTS", 10)
    training = new_training(1, recipe={"accumulate": 6})
    assert training.choice.how.slices == 1
    assert losses_differ_by(training, expected) < 1e-8
