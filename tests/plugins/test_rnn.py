"""LSTM and GRU: equal to torch's, with their cache, and in their form for training."""

from __future__ import annotations

import pytest
import torch
from random_tensors import randn

from iclbench import RunSpec, Signature, Text, TrainingContext, training_form
from iclbench.nn.generation import Recompute, decoder_of
from iclbench.runs.plan import resolve
from iclbench.runs.state_size import state_sizes
from iclbench_rnn.architecture import GRU, LSTM
from iclbench_rnn.fast import FusedStack

KINDS = [(LSTM, torch.nn.LSTM), (GRU, torch.nn.GRU)]
WIDTH, LAYERS = 5, 3


def stack(architecture):
    torch.manual_seed(0)
    config = architecture.Config(layers=LAYERS, width=WIDTH)
    return architecture().backbone(9, config).double()


@pytest.mark.parametrize(("architecture", "oracle"), KINDS)
def test_states_and_gradients_are_torch_s(architecture, oracle):
    ours = stack(architecture)
    theirs = oracle(WIDTH, WIDTH, LAYERS, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict())
    results = []
    for module in (ours, lambda x: theirs(x)[0]):
        x = randn(1, 4, 9, WIDTH).requires_grad_()
        states = module(x)
        (states * randn(2, 4, 9, WIDTH)).sum().backward()
        results.append([states, x.grad])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    for name, parameter in ours.named_parameters():
        expected = dict(theirs.named_parameters())[name].grad
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("architecture", "oracle"), KINDS)
def test_it_starts_as_torch_s(architecture, oracle):
    expected = {name: p.shape for name, p in oracle(WIDTH, WIDTH, LAYERS).named_parameters()}
    ours = stack(architecture)
    assert {name: p.shape for name, p in ours.named_parameters()} == expected
    assert all(bool((p.detach().abs() <= WIDTH**-0.5).all()) for p in ours.parameters())


@pytest.mark.parametrize(("architecture", "oracle"), KINDS)
def test_the_cache_continues_and_is_the_state(architecture, oracle):
    layers, x = stack(architecture), randn(3, 1, 9, WIDTH)
    parts, cache = [], None
    for part in x.split([4, 1, 4], dim=1):
        y, cache = layers.extend(part, cache)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, dim=1), layers(x), rtol=1e-12, atol=1e-12)
    assert sum(layers.state_sizes(9)) == cache.numel()
    assert len(layers.state_sizes(9)) == LAYERS


@pytest.mark.parametrize(("architecture", "oracle"), KINDS)
def test_its_form_for_training_is_fused_and_equal(architecture, oracle):
    layers = stack(architecture)
    context = TrainingContext(torch.device("cpu"), torch.float64, 4)
    form = training_form(layers, context)
    assert isinstance(form, FusedStack)
    x = randn(4, 4, 9, WIDTH)
    torch.testing.assert_close(form(x), layers(x), rtol=1e-12, atol=1e-12)
    vmapped = TrainingContext(torch.device("cpu"), torch.float64, 4, replicas="vmapped")
    assert training_form(layers, vmapped) is layers


@pytest.mark.parametrize(("architecture", "oracle"), KINDS)
def test_text_is_generated_with_the_cache(architecture, oracle):
    signature = Signature(Text, "token", 7, 0, 11, tuple(range(7)), causal=True, vocabulary=11)
    model = architecture().build(signature, architecture.Config(width=WIDTH)).double()
    with_cache, without = decoder_of(model, 7), Recompute(model, 7)
    for ids in (torch.tensor([[3, 1, 4]]), torch.tensor([[1]]), torch.tensor([[5]])):
        torch.testing.assert_close(
            with_cache.advance(ids), without.advance(ids), rtol=1e-12, atol=1e-12
        )
    assert state_sizes(model, 100) == state_sizes(model, 7)


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_recipes_leave_the_initial_scale_as_it_is(name):
    """`quick` sets one for models with norms, with which these hardly learn."""
    plan = resolve(RunSpec(model=name, task="least-squares", recipe="quick"))
    assert plan.config.init_std == 1.0
    assert plan.recipe.model_args["init_std"] != 1.0
    given = {"init_std": 0.1}
    plan = resolve(RunSpec(model=name, task="least-squares", recipe="quick", model_args=given))
    assert plan.config.init_std == 0.1
