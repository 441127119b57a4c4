"""Parts that threads compute at once give what they give in turn, to the bit."""

from __future__ import annotations

import pytest
import torch
from toys import Counting, Keeping, Slow, Small, Updating, context, loss, stacked
from trainings import AGREE, finished, losses_differ_by, training

from iclbench.training import threads
from iclbench.training.gradients import capacity
from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.threads import map_at_once


@pytest.fixture(autouse=True)
def _cores(monkeypatch):
    """As on a machine of many cores."""
    monkeypatch.setattr(threads, "usable_cores", lambda: 64)


@pytest.mark.parametrize("slices", [1, 2, 4, 9])
@pytest.mark.parametrize("count", [1, 3])
def test_slices_give_the_gradient_of_the_batch(slices, count):
    """Slices differ in size, and there are no more than the 5 prompts."""
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


def threaded(replicas, monkeypatch, slices=1, **how):
    """A training of replicas one by one, with the batch in slices."""
    monkeypatch.setattr("iclbench.training.gradients.choice.cpu_slices", lambda *_: slices)
    trainer = training(replicas, engine="threaded", **how)
    assert trainer.engine == "threaded"
    assert trainer.choice.how.slices == slices
    return trainer


@pytest.mark.parametrize(
    ("replicas", "slices", "model", "recipe", "dtype"),
    [
        (1, 4, "transformer", {}, torch.float32),
        (1, 4, "transformer", {}, torch.float64),
        (3, 1, "baseconv", {}, torch.float32),
        (3, 1, "baseconv", {}, torch.float64),
        (3, 2, "transformer", {"accumulate": 3}, torch.float32),
        (3, 2, "transformer", {"accumulate": 3}, torch.float64),
        (3, 1, "transformer", {"autocast": "bfloat16"}, torch.float32),
    ],
)
def test_training_by_threads_is_training_in_turn(
    replicas, slices, model, recipe, dtype, monkeypatch
):
    how = {"slices": slices, "model": model, "recipe": recipe, "dtype": dtype}
    expected = threaded(replicas, monkeypatch, **how)
    assert not expected.choice.how.by_threads
    curve = finished(expected).curve
    torch.set_num_threads(2)
    trainer = threaded(replicas, monkeypatch, **how)
    assert trainer.choice.how.by_threads
    assert finished(trainer).curve == curve
    assert torch.equal(trainer.replicas.flat, expected.replicas.flat)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("model", ["transformer", "baseconv"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_training_in_slices_is_plain_s(model, replicas, monkeypatch):
    trainer = threaded(replicas, monkeypatch, slices=4, model=model)
    plain = training(replicas, model=model, engine="plain")
    assert losses_differ_by(trainer, plain) < AGREE


def test_a_step_has_one_thread_beside_those_of_its_parts(monkeypatch):
    torch.set_num_threads(2)
    trainer, seen = threaded(2, monkeypatch), []
    update = type(trainer.optimizer).update

    def watched(self, by):
        seen.append(torch.get_num_threads())
        update(self, by)

    monkeypatch.setattr(type(trainer.optimizer), "update", watched)
    trainer.advance()
    assert set(seen) == {1}


def test_large_replicas_and_slices_are_computed_at_once_and_small_ones_are_not():
    torch.set_num_threads(2)
    assert training(1, recipe={"batch": 8192}).choice.how.by_threads
    assert training(4, recipe={"batch": 4096}).choice.how.by_threads
    assert not training(1).choice.how.by_threads
    assert not training(4).choice.how.by_threads


def test_an_optimizer_that_evaluates_the_loss_itself_keeps_all_threads():
    torch.set_num_threads(2)
    values = {"optimizer": "lbfgs", "clip": None, "schedule": "constant", "batch": 8192}
    trainer = training(1, recipe=values)
    assert trainer.choice.how.slices > 1
    assert not trainer.choice.how.by_threads


def test_a_part_of_an_accumulated_batch_has_no_empty_slices(monkeypatch):
    expected = training(1)
    monkeypatch.setattr(capacity, "SLICE_ELEMENTS", 10)
    trainer = training(1, recipe={"accumulate": 6})
    assert trainer.choice.how.slices == 1
    assert losses_differ_by(trainer, expected) < 1e-8
