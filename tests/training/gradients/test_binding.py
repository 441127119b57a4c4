"""Modules whose parameters are views of the stacked matrix, and their training forms."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from toys import Averaging, Clamping, Counting, Small, TakingReplicas, Tied, context, stacked

from iclbench import Sequence
from iclbench.api.errors import PluginError
from iclbench.training.gradients.binding import (
    Bound,
    NoFormError,
    ReplacedError,
    form_of,
)


class Renamed(nn.Module):
    """The training form of `Fast`, with other names for its parameters."""

    def __init__(self, module):
        super().__init__()
        self.first, self.second, self.scale = module.a, module.b, module.scale
        self.register_buffer("mask", torch.ones(1), persistent=False)

    def forward(self, prompt):
        return self.scale * self.second(torch.tanh(self.first(prompt.tokens)))


class Fast(Small):
    def for_training(self, context):
        return None if context.replicas == "leading" else Renamed(self)


class Stale(Small):
    """Its training form copies a parameter, which no optimizer updates."""

    def for_training(self, context):
        fast = copy.copy(self)
        fast._modules = dict(self._modules)
        fast.a = copy.deepcopy(self.a)
        return fast


@pytest.mark.parametrize("cls", [Small, Tied, Fast])
def test_module_follows_its_row(cls):
    modules, replicas, batch = stacked(cls)
    bound, prompt = Bound(replicas, 1, context()), Sequence(batch.prompt.tokens[1])
    torch.testing.assert_close(bound(prompt), modules[1](prompt))
    replicas.flat += 0.3  # as an optimizer does, in place
    for parameter in modules[1].parameters():
        parameter.data += 0.3
    torch.testing.assert_close(bound(prompt), modules[1](prompt))


def test_buffers_share_memory_with_the_replicas():
    _, replicas, batch = stacked(Counting)
    Bound(replicas, 2, context())(Sequence(batch.prompt.tokens[2]))
    assert replicas.frozen_and_buffers["norm.num_batches_tracked"].tolist() == [0, 0, 1]


@pytest.mark.parametrize(("cls", "name"), [(Averaging, "scale"), (Clamping, "weight")])
def test_forward_pass_that_replaces_a_tensor_is_detected(cls, name):
    _, replicas, batch = stacked(cls)
    with pytest.raises(ReplacedError, match=f"replaced {name}"):
        Bound(replicas, 0, context())(Sequence(batch.prompt.tokens[0]))


def test_form_with_another_parameter_is_refused():
    _, replicas, _ = stacked(Stale)
    with pytest.raises(PluginError, match=r"a\.weight, a\.bias of Stale"):
        form_of(replicas, context())


def test_a_hook_is_never_skipped():
    _, replicas, _ = stacked(Fast)
    replicas.template.a.register_forward_hook(lambda *_: None)
    assert isinstance(form_of(replicas, context())[1], Fast)


@pytest.mark.parametrize("cls", [Small, Fast])
def test_module_without_a_leading_form_is_refused(cls):
    _, replicas, _ = stacked(cls)
    with pytest.raises(NoFormError):
        Bound(replicas, slice(0, 3), context(replicas="leading"))


def test_context_has_the_dtype_of_the_parameters():
    contexts = []

    class Asking(TakingReplicas):
        def for_training(self, context):
            contexts.append((context.dtype, context.replicas))
            return self

    _, replicas, _ = stacked(Asking)
    Bound(replicas.copy(torch.float64), 0, context())
    assert contexts == [(torch.float64, "alone")]
