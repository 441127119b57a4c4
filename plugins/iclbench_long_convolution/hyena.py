"""The Hyena operator and its implicit filters."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from iclbench import initialize

from .convolution import convolve, convolve_newest, convolve_short, with_past

#: Features of a position: t, and the cosine and sine of one frequency.
FEATURES = 3
#: That frequency in turns per sequence, as in the published code.
FREQUENCY = 1e-4
#: The window falls to TARGET at this share of the sequence, in the slowest and fastest channel.
SLOWEST, FASTEST, TARGET = 1.5, 0.3, 1e-2


class HyenaCache(NamedTuple):
    """What later positions need: the short convolution's last inputs, and all inputs of the long.

    inputs (B, K − 1, (order + 1) · width); values: order − 1 tensors (B, S, width).
    """

    inputs: Tensor
    values: list[Tensor]


class ImplicitFilter(nn.Module):
    """Taps h(t) = MLP(t, cos, sin) · exp(−δt), t from 0 to 1 over `length` positions (eq. 7)."""

    def __init__(self, channels: int, length: int, width: int, frequency: float) -> None:
        super().__init__()
        self.channels, self.length = channels, length
        sizes = [FEATURES, width, width, width]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.last = nn.Linear(width, channels, bias=False)
        self.frequency = nn.Parameter(torch.full((width,), frequency))

    def forward(self) -> Tensor:
        """Return the taps (length, channels), in the parameters' dtype."""
        # Autocast's dtypes have fewer numbers between 0 and 1 than a long prompt has positions.
        with torch.autocast(self.last.weight.device.type, enabled=False):
            return self._taps()

    def _taps(self) -> Tensor:
        like = self.last.weight
        steps = torch.arange(self.length, dtype=like.dtype, device=like.device).unsqueeze(1)
        t = steps / max(1, self.length - 1)
        angle = 2 * math.pi * FREQUENCY / self.length * steps
        h = torch.cat([t, angle.cos(), -angle.sin()], dim=1)
        for layer in self.layers:
            h = torch.sin(self.frequency * layer(h))
        # Not torch.linspace, which computes in the default dtype's precision.
        channel = torch.arange(self.channels, dtype=like.dtype, device=like.device)
        share = channel / max(1, self.channels - 1)
        rate = -math.log(TARGET) * (1 / SLOWEST + share * (1 / FASTEST - 1 / SLOWEST))
        taps: Tensor = self.last(h) * torch.exp(-rate * t)
        return taps


class HyenaMixer(nn.Module):
    """y = x₀ ⊙ (h ∗ (x₁ ⊙ v) + b ⊙ x₁ ⊙ v), projected, for order 2 (definition 3.1).

    x₀, x₁ and v are projections of the input after a short convolution. Each higher order adds a
    gate and a convolution.
    """

    #: See `iclbench.ExtendsPositions`.
    extends = True

    def __init__(
        self,
        width: int,
        length: int,
        *,
        order: int,
        short: int,
        filter_width: int,
        frequency: float,
        convolution: str,
        init_std: float,
    ) -> None:
        super().__init__()
        self.width, self.order, self.convolution = width, order, convolution
        self.input = nn.Linear(width, (order + 1) * width)
        self.output = nn.Linear(width, width)
        for projection in (self.input, self.output):
            initialize(projection, init_std)
        # As torch's Conv1d starts.
        bound = short**-0.5
        self.short = nn.Parameter(torch.empty(short, (order + 1) * width).uniform_(-bound, bound))
        self.short_bias = nn.Parameter(torch.empty((order + 1) * width).uniform_(-bound, bound))
        self.filter = ImplicitFilter((order - 1) * width, length, filter_width, frequency)
        self.bias = nn.Parameter(torch.randn(order - 1, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        projected = with_past(self.input(x), len(self.short) - 1, None)
        gates, value = self._gates(projected)
        filters = self._filters(x.shape[1])
        for gate, taps, bias in zip(gates[1:], filters, self.bias, strict=True):
            value = gate * value
            value = convolve(value, taps, self.convolution) + bias * value
        mixed: Tensor = self.output(gates[0] * value)
        return mixed

    def extend(self, x: Tensor, cache: HyenaCache | None) -> tuple[Tensor, HyenaCache]:
        """Map (B, t, width) to (B, t, width) at the positions that follow those in the cache."""
        count, past = len(self.short) - 1, None if cache is None else cache.inputs
        projected = with_past(self.input(x), count, past)
        gates, value = self._gates(projected)
        values: list[Tensor] = []
        for index, gate in enumerate(gates[1:]):
            value = gate * value
            seen = value if cache is None else torch.cat([cache.values[index], value], dim=1)
            taps = self._filters(seen.shape[1])[index]
            value = convolve_newest(seen, taps, x.shape[1]) + self.bias[index] * value
            values.append(seen)
        kept = projected[:, projected.shape[1] - count :]
        return self.output(gates[0] * value), HyenaCache(kept, values)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: inputs of the short convolution, and all of the long ones."""
        short = min(length, len(self.short) - 1) * (self.order + 1) * self.width
        return (short + (self.order - 1) * self.width * length,)

    def _gates(self, projected: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
        """Return the gates x₀, x₁, … and v, each (B, S, width), of projections with their past."""
        parts = convolve_short(projected, self.short) + self.short_bias
        *gates, value = parts.chunk(self.order + 1, dim=-1)
        return tuple(gates), value

    def _filters(self, length: int) -> tuple[Tensor, ...]:
        """Return the first `length` taps of each convolution, (length, width)."""
        taps: Tensor = self.filter()[:length]
        # Interleaved, so that each convolution has slow and fast channels.
        count = self.order - 1
        return tuple(taps[:, n::count] for n in range(count))
