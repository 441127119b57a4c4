"""The harness's sequence model: in training its last block computes what is read alone."""

from __future__ import annotations

import pytest
import torch

from iclbench import load_task, training_batch
from iclbench.api.architecture import Architecture
from iclbench.api.random import torch_generator
from iclbench.nn.model import as_slice
from iclbench.plugins import host

LINEAR = {"attention": "linear", "mean": True}


def built(model, task, **options):
    architecture = host().load("model", model, Architecture)()
    config = architecture.Config(layers=2, width=8, **options)
    torch.manual_seed(0)
    module = architecture.build(task.signature, config).double()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    prompt = training_batch(task, 5, torch_generator("cpu", "t"), torch.float64).prompt
    return module, prompt


@pytest.mark.parametrize(
    ("model", "task", "options"),
    [
        ("transformer", "least-squares-prefixes", {"heads": 2}),
        ("transformer", "least-squares", {"causal": False, "layer_norm": False, "mlp": False}),
        ("transformer", "least-squares-prefixes", LINEAR),
        ("transformer", "least-squares", {"causal": False, **LINEAR}),
        ("baseconv", "least-squares-prefixes", {"bias": "position"}),
        ("baseconv", "least-squares-prefixes", {"convolution": "fft"}),
        ("baseconv", "least-squares", {"causal": False}),
        ("lsa-tokens", "least-squares-prefixes", {}),
    ],
)
def test_in_training_the_last_block_computes_what_is_read_alone(model, task, options):
    """Equal to the whole block within 1e-12 in float64, gradients too."""
    module, prompt = built(model, load_task(task), **options)
    found = []
    for training in (True, False):
        module.train(training)
        prediction = module(prompt)
        grads = torch.autograd.grad(prediction.square().sum(), list(module.parameters()))
        found.append([prediction, *grads])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_block_that_is_watched_is_computed_whole():
    module, prompt = built("transformer", load_task("least-squares"))
    module.train()
    lengths = []
    handle = module.blocks[-1].register_forward_hook(lambda m, i, out: lengths.append(out.shape[1]))
    module(prompt)
    assert lengths == [21]
    handle.remove()
    called = []
    module.blocks[-1].forward = called.append
    module(prompt)
    assert not called


@pytest.mark.parametrize(
    ("positions", "expected"),
    [((4,), slice(4, 5, 1)), ((0, 2, 4), slice(0, 5, 2)), ((1, 2), slice(1, 3, 1)),
     ((0, 1, 3), [0, 1, 3]), ((3, 1), [3, 1]), ((2, 2), [2, 2])],
)  # fmt: skip
def test_evenly_spaced_positions_are_a_slice(positions, expected):
    assert as_slice(positions) == expected
