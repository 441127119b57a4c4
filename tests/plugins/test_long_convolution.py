"""Hyena and H3: FFT, direct sum, recurrence and cache agree, and match their formulas."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from random_tensors import randn

from iclbench import UsageError
from iclbench.api.config import parse_config
from iclbench.runs.checks import check_architecture
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_long_convolution.architecture import H3, Hyena
from iclbench_long_convolution.convolution import convolve

WIDTH = 6
SMALL = {"layers": 2, "width": WIDTH}


def mixer(architecture, length, **args):
    """A mixer in float64 with parameters of about 1, so that every part counts."""
    torch.manual_seed(0)
    config = architecture.Config(width=WIDTH, init_std=0.5, **args)
    return architecture().mixer(WIDTH, length, True, config).double()


def direct_sum(u, taps):
    """Σ_s taps[t − s] u[s], position by position."""
    length = u.shape[1]
    rows = [sum(taps[t - s] * u[:, s] for s in range(t + 1)) for t in range(length)]
    return torch.stack(rows, dim=1)


@pytest.mark.parametrize("method", ["direct", "fft", "auto"])
def test_convolutions_match_the_sum(method):
    u, taps = randn(0, 2, 21, 3), randn(1, 21, 3)
    torch.testing.assert_close(
        convolve(u, taps, method), direct_sum(u, taps), rtol=1e-12, atol=1e-12
    )


def test_dtypes_below_float32_are_convolved_in_float32():
    u, taps = (randn(seed, 1, 140, 2).bfloat16() for seed in (0, 1))
    result = convolve(u, taps[0])
    assert result.dtype == torch.bfloat16
    expected = direct_sum(u.double(), taps[0].double())
    torch.testing.assert_close(result.double(), expected, rtol=0.01, atol=0.05)


@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_autocast_does_not_round_convolutions(method, dtype):
    u, taps = randn(0, 2, 21, 3).to(dtype), randn(1, 21, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        result = convolve(u, taps, method)
    assert result.dtype == dtype
    expected = direct_sum(u.double(), taps.double()).to(dtype)
    # The one rounding to bfloat16 may go to either neighbour.
    tolerance = {"rtol": 2**-7, "atol": 0} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(result, expected, **tolerance)


def test_autocast_does_not_round_filters():
    implicit = mixer(Hyena, 1024).requires_grad_(False).float().filter
    with torch.autocast("cpu", torch.bfloat16):
        taps = implicit()
    assert torch.equal(taps, implicit())


def zero(module):
    """Set a linear layer's parameters to 0."""
    for parameter in module.parameters(recurse=False):
        parameter.zero_()


@pytest.mark.parametrize("order", [2, 3])
def test_hyena_matches_its_definition(order):
    layer = mixer(Hyena, 9, order=order)
    x = randn(2, 3, 9, WIDTH)
    projected = x @ layer.input.weight.T + layer.input.bias
    past = torch.cat([torch.zeros(3, 2, (order + 1) * WIDTH).double(), projected], dim=1)
    short = sum(layer.short[k] * past[:, 2 - k : 11 - k] for k in range(3)) + layer.short_bias
    *gates, value = short.split(WIDTH, dim=2)
    filters = [layer.filter()[:, n :: order - 1] for n in range(order - 1)]
    for n in range(order - 1):
        gated = gates[n + 1] * value
        value = direct_sum(gated, filters[n]) + layer.bias[n] * gated
    expected = (gates[0] * value) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x), expected, rtol=1e-12, atol=1e-12)


def test_filters_are_windowed():
    """The window falls to 1 % at 0.3 of the sequence in the last channel, at 1.5 in the first."""
    implicit = mixer(Hyena, 11).requires_grad_(False).filter
    angle = 2 * math.pi * 1e-4 * 3 / 11
    features = torch.tensor([[0.3, math.cos(angle), -math.sin(angle)]], dtype=torch.float64)
    for layer in implicit.layers:
        features = torch.sin(implicit.frequency * (features @ layer.weight.T + layer.bias))
    unwindowed = (features @ implicit.last.weight.T)[0]
    window = implicit()[3] / unwindowed
    assert float(window[-1]) == pytest.approx(0.01, rel=1e-9)
    assert float(window[0]) == pytest.approx(0.01 ** (0.3 / 1.5), rel=1e-9)


def test_every_convolution_of_hyena_has_slow_and_fast_channels():
    layer = mixer(Hyena, 9, order=4).requires_grad_(False)
    layer.filter.layers.requires_grad_(False).apply(zero)
    layer.filter.layers[-1].bias.fill_(1.0)
    layer.filter.last.weight.fill_(1.0)
    for taps in layer._filters(9):
        lasting = (taps[-1] / taps[0]).log() / math.log(0.01)
        assert lasting[0] == pytest.approx(1 / 1.5, abs=0.4)
        assert lasting[-1] == pytest.approx(1 / 0.3, abs=0.4)


def test_h3_keeps_the_keys_that_there_were():
    layer = mixer(H3, 17, state=8)
    products = layer.state_sizes(0)[0]
    assert [layer.state_sizes(length)[0] - products for length in (1, 7, 12)] == [
        layer.width,
        7 * layer.width,
        7 * layer.width,
    ]


@pytest.mark.parametrize("args", [{}, {"head_width": 3}, {"state": 40}])
def test_h3_matches_its_recurrence(args):
    layer = mixer(H3, 17, **{"state": 8, **args})
    x = randn(3, 2, 17, WIDTH)
    one_by_one, _ = layer.extend(x, None)
    torch.testing.assert_close(layer(x), one_by_one, rtol=1e-12, atol=1e-12)


def test_h3_is_exact_over_1024_positions_with_strong_and_weak_decay():
    layer = mixer(H3, 1024, state=4)
    with torch.no_grad():
        # Factors per step from 1e-3 to nearly 1, in different channels and modes.
        layer.diagonal.log_step.zero_()
        decay = torch.logspace(math.log10(-math.log(1e-3)), -5, layer.diagonal.log_decay.numel())
        layer.diagonal.log_decay.copy_(decay.log().view_as(layer.diagonal.log_decay))
    x = randn(4, 1, 1024, WIDTH)
    one_by_one, _ = layer.extend(x, None)
    for method in ("fft", "direct"):
        layer.convolution = method
        expected = layer(x).detach()
        torch.testing.assert_close(
            one_by_one, expected, rtol=0, atol=1e-12 * float(expected.abs().max())
        )


def test_small_steps_keep_their_digits_in_float32():
    exact = mixer(H3, 5, state=8).diagonal
    with torch.no_grad():
        exact.log_step.fill_(math.log(1e-5))
        rounded = copy.deepcopy(exact).float()
        # The same float32 numbers for both.
        exact.load_state_dict(rounded.state_dict())
        # After the first tap, which the skip adds to.
        taps, expected = rounded.kernel(5)[1:].double(), exact.kernel(5)[1:]
    assert float((taps - expected).abs().max() / expected.abs().max()) < 1e-6


def test_the_diagonal_state_space_holds_its_input():
    """For a constant input, zero-order hold gives the continuous system's answer exactly."""
    torch.manual_seed(0)
    system = mixer(H3, 5, state=2).diagonal
    step = system.log_step.exp()
    a = torch.complex(-system.log_decay.exp(), system.frequency)
    c = torch.complex(*system.output)
    continuous = 2 * (c * (torch.exp(a * step * 5) - 1) / a).real.sum(dim=1) + system.skip
    torch.testing.assert_close(system.kernel(5).sum(dim=0), continuous, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("architecture", "args"),
    [(Hyena, {}), (Hyena, {"order": 3, "short": 1}), (H3, {"state": 8, "head_width": 2})],
)
def test_the_cache_continues_and_is_the_state(architecture, args):
    layer = mixer(architecture, 12, **args)
    x = randn(5, 1, 12, WIDTH)
    parts, cache = [], None
    for part in x.split([5, 1, 4, 2], dim=1):
        y, cache = layer.extend(part, cache)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, dim=1), layer(x), rtol=1e-12, atol=1e-12)
    tensors = [t for part in cache for t in (part if isinstance(part, list) else [part])]
    numbers = sum(t.numel() * (2 if t.is_complex() else 1) for t in tensors)
    assert layer.state_sizes(12) == (numbers,)


@pytest.mark.parametrize("architecture", [Hyena, H3])
def test_earlier_positions_do_not_see_later_ones(architecture):
    layer = mixer(architecture, 160).requires_grad_(False)
    x = randn(6, 1, 160, WIDTH)
    later = x.clone()
    later[:, 80:] += 1.0
    change = (layer(later) - layer(x))[:, :80].abs().max()
    assert float(change) < 1e-12 * float(layer(later).abs().max())


@pytest.mark.parametrize(
    ("architecture", "args"),
    [(Hyena, {"convolution": "fft"}), (H3, {"convolution": "fft", "state": 8, "head_width": 3})],
)
def test_they_conform_with_fft(architecture, args):
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
    check_architecture(architecture(), task, architecture.Config(**SMALL, **args))


@pytest.mark.parametrize(
    ("architecture", "args", "reason"),
    [
        (Hyena, {"causal": False}, "these convolutions are causal"),
        (Hyena, {"order": 1}, "order: input should be greater than or equal to 2"),
        (H3, {"state": 0}, "state: input should be greater than or equal to 2"),
        (H3, {"state": 7}, "state=7 is odd"),
        (H3, {"width": 6, "head_width": 4}, "width 4 do not divide the width 6"),
    ],
)
def test_bad_arguments_get_one_line(architecture, args, reason):
    with pytest.raises(UsageError, match=reason) as error:
        parse_config(architecture.Config, args, "model")
    assert "\n" not in str(error.value)
