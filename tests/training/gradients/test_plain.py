"""The reference program: `loss.backward()` per replica."""

from __future__ import annotations

import pytest
import torch
from toys import (
    Averaging,
    Clamping,
    Counting,
    Replacing,
    Single,
    Small,
    Tied,
    loss,
    single,
    stacked,
)

from iclbench import Batch, Sequence
from iclbench.training.gradients.plain import Plain
from iclbench.training.replicas import Replicas


@pytest.mark.parametrize("cls", [Small, Tied, Counting])
def test_losses_and_gradients_match_the_modules(cls):
    modules, replicas, batch = stacked(cls)
    losses, gradients = Plain(replicas, loss)(batch)
    for r, module in enumerate(modules):
        value = loss(module(Sequence(batch.prompt.tokens[r])), batch.target[r]).mean()
        value.backward()
        torch.testing.assert_close(losses[r], value.detach(), rtol=0, atol=0)
        expected = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
        torch.testing.assert_close(gradients[r], expected, rtol=0, atol=0)


@pytest.mark.parametrize("cls", [Averaging, Clamping, Replacing])
def test_module_that_replaces_its_tensors_is_trained_on_its_row(cls):
    Replacing.passes = 0
    _, replicas, batch = stacked(cls, count=1)
    program = Plain(replicas, loss)
    for steps in range(5):
        replicas.flat += 0.1  # as an optimizer does, in place
        losses, gradients = program(batch)
        if cls is Replacing and steps < 2:
            continue  # `single` calls the module too, and it counts its calls
        value, gradient = single(replicas, 0, batch)
        torch.testing.assert_close(losses[0], value, msg=f"after {steps} steps")
        torch.testing.assert_close(gradients[0], gradient)


def test_updated_buffers_are_kept_per_replica():
    modules, replicas, batch = stacked(Counting)
    Plain(replicas, loss)(batch)
    for r, module in enumerate(modules):
        module.train()(Sequence(batch.prompt.tokens[r]))
        state = replicas.state_dict(r)
        torch.testing.assert_close(state["norm.running_mean"], module.norm.running_mean)
        assert state["norm.num_batches_tracked"] == 1


def test_frozen_parameters_have_no_gradient():
    modules, whole, batch = stacked(Tied, count=1)
    part = Replicas(modules, torch.device("cpu"), ("a.weight",))
    gradients = whole.split(Plain(whole, loss)(batch)[1][0])
    expected = torch.cat([g.reshape(-1) for name, g in gradients.items() if name != "a.weight"])
    torch.testing.assert_close(Plain(part, loss)(batch)[1][0], expected)


def test_program_keeps_no_state_between_calls():
    _, replicas, batch = stacked(Small)
    program = Plain(replicas, loss)
    first = [t.clone() for t in program(batch)]
    program(Batch(Sequence(batch.prompt.tokens + 1), batch.target))
    torch.testing.assert_close([*program(batch)], first, rtol=0, atol=0)


@pytest.mark.parametrize("repeated", [True, False])
def test_gradients_allow_in_place_addition(repeated):
    torch.manual_seed(0)
    replicas = Replicas([Single(repeated)], torch.device("cpu"))
    batch = Batch(Sequence(torch.randn(1, 5, 7, 4)), torch.randn(1, 5, 7, 1))
    _, gradients = Plain(replicas, loss)(batch)
    gradients.add_(1.0)
    torch.testing.assert_close(gradients[0] - 1.0, single(replicas, 0, batch)[1])
