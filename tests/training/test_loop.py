"""The training loop: replicas, diverging ones, clipping, random streams."""

from __future__ import annotations

import pytest
import torch
from small import TASK, Noisy, Small, same, trained, training
from torch import nn

from iclbench import Recipe, UsageError, training_batch
from iclbench.training.loop import Training
from iclbench.training.resumption import Resumption
from iclbench.training.state import Replica


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.float64, 1e-10)], ids=str
)
def test_seeds_alone_and_as_replicas_give_the_same_losses(dtype, tolerance):
    """Losses over 30 Adam steps differ by at most 1e-3 in float32 and 1e-10 in float64."""
    together = trained([3, 4, 5], dtype)
    assert together.replicas == 3
    for column, seed in enumerate([3, 4, 5]):
        alone = trained([seed], dtype)
        assert alone.replicas == 1
        expected = torch.tensor([row[0] for row in alone.curve])
        losses = torch.tensor([row[column] for row in together.curve])
        torch.testing.assert_close(losses, expected, rtol=tolerance, atol=0)


def test_each_replica_has_its_own_learning_rate():
    together = trained([3, 3], rates=[1e-2, 3e-2])
    for column, rate in enumerate([1e-2, 3e-2]):
        alone = trained([3], rates=[rate])
        assert [row[column] for row in together.curve] == pytest.approx(
            [row[0] for row in alone.curve], rel=1e-10
        )


def test_shorter_training_is_the_beginning_of_a_longer_one():
    longer, shorter = trained([3], chunk=1), trained([3], chunk=1, steps=7)
    assert longer.curve[:7] == shorter.curve


@pytest.mark.parametrize("cls", [Small, Noisy])
def test_observing_and_checkpointing_do_not_change_a_bit(tmp_path, cls):
    plain = trained([1, 2], cls=cls)
    observations = []
    observed = trained(
        [1, 2],
        cls=cls,
        resumption=Resumption(tmp_path / "c.safetensors", every_seconds=0),
        observer=lambda step, loss: observations.append((step, loss, torch.randn(3))),
    )
    assert observations[-1][0] == 30
    assert plain.curve == observed.curve
    assert same(plain, observed)


def test_diverging_replica_is_frozen_and_the_others_continue():
    both = trained([1, 2], rates=[1e-2, 1e30], optimizer="sgd")
    assert both.diverged_at[0] is None
    assert both.diverged_at[1] is not None
    alone = trained([1], optimizer="sgd")
    for name, value in alone.states[0].items():
        torch.testing.assert_close(both.states[0][name], value)
    assert all(torch.isfinite(t).all() for t in both.states[1].values())


def with_results(trainer, change):
    """Let `change` return other losses and gradients of every step."""
    program = trainer.program

    def changed(batch):
        return change(trainer.step, *program(batch))

    changed.name = "changed"
    trainer.program = changed
    return trainer.run(None, lambda step, loss: None)


def test_a_gradient_that_is_not_finite_freezes_its_replica_though_the_loss_is_finite():
    def change(step, losses, gradients):
        if step >= 4:
            gradients[1, 0] = float("nan")
        return losses, gradients

    result = with_results(training([1, 2]), change)
    assert result.diverged_at == [None, 4]
    assert all(bool(tensor.isfinite().all()) for tensor in result.states[1].values())


def test_the_curve_of_a_training_that_diverged_ends_with_its_last_step():
    def change(step, losses, gradients):
        return losses * (float("nan") if step >= 1 else 1.0), gradients

    result = with_results(training([1, 2], steps=1000), change)
    assert result.steps < 10
    assert result.curve_steps == [result.steps]


def test_training_stops_when_every_replica_has_diverged():
    result = trained([1], rates=[1e30], optimizer="sgd", steps=1000)
    assert result.curve_steps[-1] < 1000


def test_replicas_that_cannot_be_stacked_are_trained_in_turn_with_a_note():
    result = trained([1, 2], cls=Noisy)
    assert result.replicas == 1
    assert "random numbers" in result.note
    alone = trained([2], cls=Noisy)
    assert [row[1] for row in result.curve] == [row[0] for row in alone.curve]


@pytest.mark.parametrize("optimizer", ["lbfgs", "gauss-newton"])
def test_whole_batch_optimizers_refuse_a_model_that_draws(optimizer):
    with pytest.raises(UsageError, match="draws no random numbers"):
        trained([1, 2], cls=Noisy, optimizer=optimizer)


def test_clipping_matches_torch():
    clipped = trained([1], clip=0.5, optimizer="sgd", steps=5, chunk=1)
    torch.manual_seed(1)
    module = Small().to(torch.float64)
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-2)
    generator = training([1], chunk=1).data.generators[0]
    for _ in range(5):
        batch = training_batch(TASK, 8, generator, torch.float64)
        optimizer.zero_grad()
        TASK.loss(module(batch.prompt), batch.target).mean().backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
    for name, value in module.named_parameters():
        torch.testing.assert_close(clipped.states[0][name], value.detach())


def test_initialization_and_data_have_separate_streams():
    first, second = training([1]).data.generators[0], training([2]).data.generators[0]
    assert not torch.equal(first.get_state(), second.get_state())
    assert torch.equal(first.get_state(), training([1], steps=99).data.generators[0].get_state())


def test_a_trial_s_prompts_are_not_the_training_data_s():
    trainer, untouched = training([1, 1]), training([1, 1])
    trial, chunk = trainer.trial(), trainer.data.next()
    assert trial.target.shape[:2] == (2, 8)
    assert not torch.equal(trial.target[0], trial.target[1])
    assert not torch.equal(trial.target[0], chunk.target[0, 0])
    assert torch.equal(chunk.target, untouched.data.next().target)


@pytest.mark.gpu
def test_seeds_alone_and_as_replicas_agree_on_a_gpu():
    pytest.skip("no CUDA device") if not torch.cuda.is_available() else None
    device = torch.device("cuda")
    torch.manual_seed(0)
    modules = [Small().double() for _ in range(2)]
    recipe = Recipe(steps=30, batch=8, chunk=5)
    members = [Replica(0, 1e-2), Replica(1, 1e-2)]
    options = {"device": device, "dtype": torch.float64}
    both = Training(modules, members, TASK, recipe, **options).run(None, lambda s, x: None)
    for r in range(2):
        alone = Training([modules[r]], [members[r]], TASK, recipe, **options)
        curve = alone.run(None, lambda s, x: None).curve
        assert [row[r] for row in both.curve] == pytest.approx([row[0] for row in curve], rel=1e-9)


def test_denormal_numbers_are_zero_in_steps_and_nowhere_else():
    trainer, seen = training([3]), {"step": set(), "between": set()}
    small, take_step = torch.tensor(1e-40, dtype=torch.float32), trainer.take_step

    def watched(chunk, index, step):
        seen["step"].add(float(small.mul(1.0)))
        return take_step(chunk, index, step)

    trainer.take_step = watched
    trainer.run(None, lambda step, loss: seen["between"].add(float(small.mul(1.0)) > 0))
    assert seen == {"step": {0.0}, "between": {True}}
