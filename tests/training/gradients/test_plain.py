"""The reference: `loss.backward()` of each module."""

from __future__ import annotations

import pytest
import torch
from toys import (
    Averaging,
    Clamping,
    ClampingInPlace,
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
def test_losses_and_gradients_are_each_module_s(cls):
    modules, replicas, batch = stacked(cls)
    losses, gradients = Plain(replicas, loss)(batch)
    for r, module in enumerate(modules):
        value = loss(module(Sequence(batch.prompt.tokens[r])), batch.target[r]).mean()
        value.backward()
        torch.testing.assert_close(losses[r], value.detach(), rtol=0, atol=0)
        expected = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
        torch.testing.assert_close(gradients[r], expected, rtol=0, atol=0)


@pytest.mark.parametrize("cls", [Averaging, Clamping, ClampingInPlace, Replacing])
def test_a_module_that_replaces_its_tensors_is_trained_as_torch_would(cls):
    """What a forward pass puts in the place of a buffer or parameter stays there."""
    (module,), replicas, batch = stacked(cls, count=1)
    Replacing.passes = 0
    expected = []
    for _ in range(5):
        module.zero_grad()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1)  # as an optimizer does, in place
        value = loss(module(Sequence(batch.prompt.tokens[0])), batch.target[0]).mean()
        value.backward()
        expected.append((value.detach(), torch.cat([p.grad.ravel() for p in module.parameters()])))
    Replacing.passes = 0
    program = Plain(replicas, loss)
    for value, gradient in expected:
        replicas.flat += 0.1
        losses, gradients = program(batch)
        torch.testing.assert_close(losses[0], value)
        torch.testing.assert_close(gradients[0], gradient)
    for name, value in module.state_dict().items():
        torch.testing.assert_close(replicas.state_dict(0)[name], value)


def test_buffers_that_a_module_updates_are_kept_for_each_replica():
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


def test_it_keeps_nothing_between_calls():
    _, replicas, batch = stacked(Small)
    program = Plain(replicas, loss)
    first = [t.clone() for t in program(batch)]
    program(Batch(Sequence(batch.prompt.tokens + 1), batch.target))
    torch.testing.assert_close([*program(batch)], first, rtol=0, atol=0)


@pytest.mark.parametrize("repeated", [True, False])
def test_a_gradient_may_be_added_to(repeated):
    torch.manual_seed(0)
    replicas = Replicas([Single(repeated)], torch.device("cpu"))
    batch = Batch(Sequence(torch.randn(1, 5, 7, 4)), torch.randn(1, 5, 7, 1))
    _, gradients = Plain(replicas, loss)(batch)
    gradients.add_(1.0)
    torch.testing.assert_close(gradients[0] - 1.0, single(replicas, 0, batch)[1])
