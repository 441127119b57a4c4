"""Backbone models: embedding, read-out, form for training, generation, states."""

from __future__ import annotations

import pytest
import torch
from random_tensors import randn
from torch import nn

from iclbench import (
    BackboneArchitecture,
    BackboneConfig,
    FactoredLogits,
    Signature,
    Text,
    TrainingContext,
    token_loss,
    training_form,
)
from iclbench.api.prompts import Sequence
from iclbench.nn.generation import Recompute, decoder_of
from iclbench.runs.state_size import state_sizes

TEXT = Signature(Text, "token", 6, 0, 7, tuple(range(6)), causal=True, vocabulary=7)
REAL = Signature(Sequence, "positions", 6, 3, 2, (1, 4))


class Sum(nn.Module):
    """A causal backbone: the running sum of its inputs."""

    extends = True

    def forward(self, x):
        return x.cumsum(dim=1)

    def extend(self, x, cache):
        total = x.cumsum(dim=1) + (0 if cache is None else cache)
        return total, total[:, -1:]

    def state_sizes(self, length):
        return (4,)


class Plain(nn.Module):
    def forward(self, x):
        return x.cumsum(dim=1)


class Summing(BackboneArchitecture):
    name = "summing"
    part = Sum

    def backbone(self, length, config):
        return self.part()


class Bare(Summing):
    name = "bare"
    part = Plain


def built(signature, architecture=Summing):
    torch.manual_seed(0)
    return architecture().build(signature, BackboneConfig(width=4, init_std=0.5)).double()


def test_it_reads_out_at_the_signature_s_positions():
    model, tokens = built(REAL), randn(0, 5, 6, 3)
    states = (tokens @ model.embed.real.weight.T + model.embed.real.bias).cumsum(dim=1)
    expected = states[:, [1, 4]] @ model.readout.weight.T + model.readout.bias
    torch.testing.assert_close(model(Sequence(tokens)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("factored", [True, False])
def test_its_form_for_training_is_equal(factored):
    model = built(TEXT)
    ids = torch.randint(0, 7, (3, 6), generator=torch.Generator().manual_seed(0))
    context = TrainingContext(torch.device("cpu"), torch.float64, 3, factored_logits=factored)
    prediction = training_form(model, context)(Text(ids))
    assert isinstance(prediction, FactoredLogits) == factored
    expected = token_loss(model(Text(ids)), ids)
    torch.testing.assert_close(token_loss(prediction, ids), expected, rtol=1e-12, atol=1e-12)


def test_logits_of_other_targets_are_not_factored():
    context = TrainingContext(torch.device("cpu"), torch.float64, 3, factored_logits=True)
    form = training_form(built(REAL), context)
    assert form(Sequence(randn(1, 3, 6, 3))).shape == (3, 2, 2)


def test_it_has_no_form_for_leading_replicas():
    context = TrainingContext(torch.device("cpu"), torch.float64, 3, replicas="leading")
    assert training_form(built(TEXT), context) is None


def test_text_is_generated_with_the_backbone_s_cache():
    model = built(TEXT)
    cached, recomputed = decoder_of(model, 6), Recompute(model, 6)
    for ids in (torch.tensor([[3, 1]]), torch.tensor([[5]]), torch.tensor([[0]])):
        torch.testing.assert_close(cached.advance(ids), recomputed.advance(ids))
    assert isinstance(decoder_of(built(TEXT, Bare), 6), Recompute)


def test_states_are_those_of_the_backbone():
    assert state_sizes(built(TEXT), 9) == (4,)
    assert state_sizes(built(TEXT, Bare), 9) is None


def test_prompts_of_several_sizes_are_refused():
    varying = Signature(Sequence, "positions", 6, 3, 2, (1, 4), varies=True)
    reason = Summing().supports(varying, BackboneConfig())
    assert reason == "it is built for prompts of one size, and the task has several"
    assert Summing().supports(REAL, BackboneConfig()) is None
