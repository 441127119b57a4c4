"""BaseConv: the layer matches equation 2, and both convolution methods agree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import TrainingContext
from iclbench.runs.checks import check_architecture
from iclbench_baseconv.architecture import BaseConv, BaseConvConfig
from iclbench_baseconv.convolution import DIRECT_UP_TO, convolve
from iclbench_baseconv.fast import convolve_by_channel
from iclbench_baseconv.mixer import BaseConvMixer
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig

shapes = {"length": st.integers(1, 12), "channels": st.integers(1, 4), "seed": st.integers(0, 99)}


def by_definition(u, h, causal):
    length = u.shape[1]
    y = torch.zeros_like(u)
    for t in range(length):
        for s in range(length):
            if not causal or s <= t:
                y[:, t] += h[(t - s) % length] * u[:, s]
    return y


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("method", ["direct", "fft"])
def test_autocast_does_not_round_a_convolution(causal, method):
    """Else `auto` would have another precision from 129 positions on."""
    generator = torch.Generator().manual_seed(0)
    u = torch.randn(2, 30, 4, generator=generator)
    h = torch.randn(30, 4, generator=generator)
    exact = convolve(u.double(), h.double(), causal)
    with torch.autocast("cpu", torch.bfloat16):
        convolved = convolve(u, h, causal, method)
        chosen = convolve_by_channel(u, h, causal, slice(9, None))
        rounded = convolve(u.bfloat16(), h, causal, method)
    torch.testing.assert_close(convolved.double(), exact, rtol=0, atol=1e-5)
    torch.testing.assert_close(chosen.double(), exact[:, 9:], rtol=0, atol=1e-5)
    assert rounded.dtype == torch.bfloat16


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("method", ["direct", "fft"])
@given(**shapes)
def test_convolution_matches_its_definition(causal, method, length, channels, seed):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(2, length, channels, generator=generator, dtype=torch.float64)
    h = torch.randn(length, channels, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(convolve(u, h, causal, method), by_definition(u, h, causal))


@pytest.mark.parametrize("causal", [True, False])
def test_both_methods_have_equal_gradients(causal):
    u = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    h = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    grads = [
        torch.autograd.grad(convolve(u, h, causal, m).square().sum(), (u, h))
        for m in ("direct", "fft")
    ]
    torch.testing.assert_close(grads[0], grads[1])


def test_the_direct_sum_keeps_zeros_exact_and_the_fft_does_not():
    u, h = torch.randn(1, 20, 1), torch.zeros(20, 1)
    u[:, 10:] = 0
    h[0] = 1
    assert torch.equal(convolve(u, h, True, "direct"), u)
    assert not torch.equal(convolve(u, h, True, "fft"), u)


@pytest.mark.parametrize("length", [DIRECT_UP_TO, DIRECT_UP_TO + 1])
def test_auto_is_direct_for_short_sequences(length):
    u, h = torch.randn(1, length, 2), torch.randn(length, 2)
    method = "direct" if length <= DIRECT_UP_TO else "fft"
    assert torch.equal(convolve(u, h, True), convolve(u, h, True, method))


@pytest.mark.parametrize("bias", ["channel", "position"])
@pytest.mark.parametrize("causal", [True, False])
def test_layer_matches_equation_2(bias, causal):
    torch.manual_seed(0)
    layer = BaseConvMixer(4, 6, causal, bias=bias, convolution="auto", init_std=0.5).double()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    u = torch.randn(3, 6, 4, dtype=torch.float64)
    gate = u @ layer.gate + layer.gate_bias
    convolved = by_definition(u @ layer.input + layer.input_bias, layer.filter, causal)
    expected = (gate * (convolved + layer.filter_bias)) @ layer.output + layer.output_bias
    torch.testing.assert_close(layer(u), expected)
    assert layer.gate_bias.shape == ((6, 4) if bias == "position" else (4,))


@pytest.mark.parametrize("convolution", ["direct", "fft"])
def test_a_short_filter_is_a_long_one_with_zeros(convolution):
    torch.manual_seed(0)
    options = {"bias": "channel", "convolution": convolution, "init_std": 0.5}
    short = BaseConvMixer(4, 9, True, **options, taps=3).double()
    full = BaseConvMixer(4, 9, True, **options).double()
    state = short.state_dict()
    state["filter"] = torch.cat([state["filter"], torch.zeros(6, 4, dtype=torch.float64)])
    full.load_state_dict(state)
    u = torch.randn(2, 9, 4, dtype=torch.float64)
    torch.testing.assert_close(short(u), full(u))
    form = short.for_training(TrainingContext(torch.device("cpu"), torch.float64, 2))
    torch.testing.assert_close(form(u), full(u))
    # It keeps the two inputs before the present one, at any length.
    assert short.state_sizes(9) == (2 * 4,)
    assert short(u[:, :2]).shape == (2, 2, 4)


@pytest.mark.parametrize(
    "args", [{}, {"causal": False}, {"bias": "position"}, {"mlp": False}, {"taps": 3}]
)
def test_it_conforms(args):
    config = BaseConvConfig(layers=2, width=8, **args)
    check_architecture(BaseConv(), LeastSquares(FixedConfig(examples=6)), config)


def test_it_conforms_on_prefixes():
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
    check_architecture(BaseConv(), task, BaseConvConfig(layers=2, width=8))
    assert "answers" in BaseConv().supports(task.signature, BaseConvConfig(causal=False))


@pytest.mark.parametrize("convolution", ["direct", "fft", "auto"])
def test_a_causal_layer_is_causal_on_fewer_positions_than_it_is_built_for(convolution):
    layer = BaseConvMixer(4, 300, True, bias="channel", convolution=convolution, init_std=1.0)
    layer = layer.double()
    u = torch.randn(2, 150, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    changed = u.clone()
    changed[:, 100:] += 1.0
    moved = (layer(changed) - layer(u))[:, :100].abs().max()
    assert moved < 1e-12
