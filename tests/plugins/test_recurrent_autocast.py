"""Recurrent models under autocast: decays and rotations keep float32's digits."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import softplus

from iclbench import Architecture, Signature, host
from iclbench.api.prompts import Sequence
from iclbench_recurrent.attention import log_decays, rotate
from iclbench_recurrent.mixer import split_heads

WIDTH = 8


def mixer_of(name):
    """Return a mixer at random parameters, in float32."""
    architecture = host().load("model", name, Architecture)()
    torch.manual_seed(0)
    signature = Signature(Sequence, "positions", 4, 3, 1, (3,))
    config = architecture.Config(layers=1, width=WIDTH)
    mixer = architecture.build(signature, config).blocks[0].mixer
    for parameter in mixer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return mixer


def recurrence_inputs(mixer, x):
    """Return the inputs of the mixer's recurrence under autocast to bfloat16."""
    recorded = []

    def record(*inputs, state):
        recorded.extend(inputs)
        return mixer.chunked(*inputs, state=state)

    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        mixer.mix(x, None, record)
    return recorded


@pytest.mark.parametrize(
    ("name", "layer", "i"), [("mamba", "step", 1), ("gated-delta-net", "decay", 4)]
)
def test_biases_of_decays_keep_their_digits(name, layer, i):
    mixer = mixer_of(name)
    linear = mixer.get_submodule(layer)
    linear.weight.data.zero_()
    actual = recurrence_inputs(mixer, torch.randn(2, 5, WIDTH))[i]
    expected = softplus(linear.bias)
    if name == "gated-delta-net":
        expected = (-mixer.log_rate.exp() * expected)[:, None, None]
    torch.testing.assert_close(actual, expected.expand(actual.shape), rtol=1e-6, atol=0)


def test_retention_rotates_and_decays_in_float32():
    mixer, x = mixer_of("retention"), torch.randn(2, 50, WIDTH)
    query, _, _, decays = recurrence_inputs(mixer, x)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        rounded = split_heads(mixer.query(x), mixer.heads)
    assert rounded.dtype == torch.bfloat16
    expected = rotate(rounded.double(), 0).float()
    torch.testing.assert_close(query, expected, rtol=1e-5, atol=1e-6)
    expected = log_decays(mixer.heads).float()[:, None, None].expand(decays.shape)
    assert torch.equal(decays, expected)
