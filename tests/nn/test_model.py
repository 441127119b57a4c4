"""The harness's sequence model and its training form."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import (
    Config,
    PluginError,
    SequenceArchitecture,
    Signature,
    Text,
    TrainingContext,
    load_task,
    training_batch,
    training_form,
)
from iclbench.api.random import torch_generator
from iclbench.nn.logits import FactoredLogits, token_loss
from iclbench.nn.readout import as_slice
from iclbench_baseconv.architecture import BaseConv
from iclbench_transformer.architecture import Transformer

CPU = torch.device("cpu")
CONTEXT = TrainingContext(CPU, torch.float64, batch_size=5)
LENGTH, VOCABULARY = 6, 11


def build(signature, architecture=Transformer, **options):
    torch.manual_seed(0)
    config = architecture.Config(layers=2, width=8, **options)
    module = architecture().build(signature, config).double().train()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module


def test_training_form_computes_the_last_block_only_at_read_out_positions():
    task = load_task("least-squares")
    module = build(task.signature)
    form = training_form(module, CONTEXT)
    lengths = []
    for part in (module.blocks[-1], form.blocks[-1]):
        part.register_forward_hook(lambda m, i, out: lengths.append(out.shape[1]))
    prompt = training_batch(task, 5, torch_generator("cpu", "t"), torch.float64).prompt
    torch.testing.assert_close(form(prompt), module(prompt))
    assert lengths == [1, 21]


def text_signature(readout):
    return Signature(
        prompt=Text,
        target="token",
        length=LENGTH,
        input_width=0,
        output_width=VOCABULARY,
        readout=readout,
        causal=True,
        vocabulary=VOCABULARY,
    )


@pytest.mark.parametrize("architecture", [Transformer, BaseConv])
@pytest.mark.parametrize("readout", [(0, 1, 3), tuple(range(LENGTH)), (5,)], ids=str)
@pytest.mark.parametrize("tied", [False, True])
def test_factored_logits_have_the_loss_and_gradients_of_logits(architecture, readout, tied):
    module = build(text_signature(readout), architecture, tied=tied)
    context = TrainingContext(CPU, torch.float64, batch_size=3, factored_logits=True)
    form = training_form(module, context)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(VOCABULARY, (3, LENGTH), generator=generator)
    target = torch.randint(VOCABULARY, (3, len(readout)), generator=generator)
    assert isinstance(form(Text(ids)), FactoredLogits)
    results = []
    for predict in (form, module):
        loss = token_loss(predict(Text(ids)), target).mean()
        results.append([loss, *torch.autograd.grad(loss, list(module.parameters()))])
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


def test_only_token_targets_have_factored_logits():
    task = load_task("least-squares")
    context = TrainingContext(CPU, torch.float64, batch_size=3, factored_logits=True)
    prompt = training_batch(task, 3, torch_generator("cpu", "t"), torch.float64).prompt
    assert isinstance(training_form(build(task.signature), context)(prompt), torch.Tensor)


@pytest.mark.parametrize(
    ("positions", "expected"),
    [((4,), slice(4, 5, 1)), ((0, 2, 4), slice(0, 5, 2)), ((1, 2), slice(1, 3, 1)),
     ((0, 1, 3), [0, 1, 3]), ((3, 1), [3, 1]), ((2, 2), [2, 2])],
)  # fmt: skip
def test_evenly_spaced_positions_are_a_slice(positions, expected):
    assert as_slice(positions) == expected


class Returning(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(x)


def architecture_of(mixer):
    class Mine(SequenceArchitecture):
        def mixer(self, width, length, causal, config):
            return mixer

    return Mine


@pytest.mark.parametrize(
    ("change", "returned"),
    [(lambda x: x[:, 1:], r"\(5, 20, 8\)"), (lambda x: (x, x), "a tuple")],
)
def test_a_mixer_that_returns_something_else_is_named(change, returned):
    task = load_task("least-squares")
    module = build(task.signature, architecture_of(Returning(change)))
    prompt = training_batch(task, 5, torch_generator("cpu", "t"), torch.float64).prompt
    with pytest.raises(
        PluginError, match=rf"the mixer Returning returned {returned} for \(5, 21, 8\)"
    ):
        module(prompt)


def test_a_mixer_that_is_no_module_is_refused():
    signature = load_task("least-squares").signature
    with pytest.raises(PluginError, match=r"Mine\.mixer\(\) returned 3, not a module"):
        build(signature, architecture_of(3))


def test_a_configuration_that_is_not_of_a_sequence_model_is_refused():
    architecture, signature = architecture_of(nn.Identity())(), load_task("least-squares").signature
    with pytest.raises(
        PluginError, match=r"Mine\.Config must derive from iclbench\.SequenceConfig"
    ):
        architecture.supports(signature, Config())
