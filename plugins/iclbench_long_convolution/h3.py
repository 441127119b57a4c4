"""The H3 layer: a shift and a diagonal state space between gates."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from iclbench import initialize

from .convolution import convolve, convolve_short, with_past

#: Step sizes of the diagonal state space start between these, uniformly in the logarithm.
SMALLEST_STEP, LARGEST_STEP = 1e-3, 1e-1


class H3Cache(NamedTuple):
    """What later positions need: the shift's last keys, and the diagonal system's state.

    keys (B, N − 1, width); state, complex (B, heads · head_width², N / 2).
    """

    keys: Tensor
    state: Tensor


class DiagonalStateSpace(nn.Module):
    """x′ = Ax + u, y = 2 Re(Cx) + Du for N/2 complex states of each channel, A diagonal (S4D).

    With zero-order hold at step Δ: x_t = e^{ΔA} x_{t−1} + (e^{ΔA} − 1)/A · u_t. A starts as
    −½ + iπn (S4D-Lin).
    """

    def __init__(self, channels: int, states: int) -> None:
        super().__init__()
        modes = states // 2
        low, high = math.log(SMALLEST_STEP), math.log(LARGEST_STEP)
        self.log_step = nn.Parameter(low + (high - low) * torch.rand(channels, 1))
        self.log_decay = nn.Parameter(torch.full((channels, modes), math.log(0.5)))
        self.frequency = nn.Parameter(math.pi * torch.arange(modes * 1.0).repeat(channels, 1))
        self.output = nn.Parameter(torch.randn(2, channels, modes) * 0.5**0.5)
        self.skip = nn.Parameter(torch.randn(channels))

    def discretized(self) -> tuple[Tensor, Tensor]:
        """Return ΔA and C(e^{ΔA} − 1)/A, complex, (channels, N / 2) each."""
        matrix = torch.complex(-self.log_decay.exp(), self.frequency)
        exponent = matrix * self.log_step.exp()
        # Input and output coefficients act as their product alone. Small steps cancel in e^x − 1.
        return exponent, torch.complex(*self.output) * torch.expm1(exponent) / matrix

    def kernel(self, length: int) -> Tensor:
        """Return the taps 2 Re Σ_n C_n B_n e^{ΔA_n l} + D[l = 0], (length, channels)."""
        exponent, coefficient = self.discretized()
        steps = torch.arange(length, dtype=self.skip.dtype, device=self.skip.device)
        powers = (exponent.unsqueeze(-1) * steps).exp()
        taps = 2 * (coefficient.unsqueeze(-1) * powers).real.sum(dim=1)
        first = (steps == 0).to(taps)
        return (taps + self.skip.unsqueeze(1) * first).mT

    def step(self, u: Tensor, state: Tensor, copies: int) -> tuple[Tensor, Tensor]:
        """Return y (B, channels · copies) for u of that shape, and the next state.

        Each channel's system runs on `copies` inputs; the state is (B, channels · copies, N / 2).
        """
        exponent, coefficient = (
            part.repeat_interleave(copies, dim=0) for part in self.discretized()
        )
        state = exponent.exp() * state + u.unsqueeze(-1)
        y = 2 * (coefficient * state).real.sum(dim=-1)
        return y + self.skip.repeat_interleave(copies) * u, state


class H3Mixer(nn.Module):
    """Q ⊙ SSM_diag(SSM_shift(K) ⊙ V), projected (Fu et al. 2023, section 3.2).

    With a head width above 1, SSM_shift(K) ⊙ V is each head's outer product, and Q multiplies the
    matrix that results.
    """

    #: See `iclbench.ExtendsPositions`.
    extends = True

    def __init__(
        self, width: int, *, states: int, head_width: int, convolution: str, init_std: float
    ) -> None:
        super().__init__()
        self.width, self.states, self.head_width = width, states, head_width
        self.heads, self.convolution = width // head_width, convolution
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        initialize(self, init_std)
        # The variance 1/N of the shift's taps preserves the scale of the keys.
        self.shift = nn.Parameter(states**-0.5 * torch.randn(states, width))
        self.shift_skip = nn.Parameter(torch.randn(width))
        self.diagonal = DiagonalStateSpace(self.heads, states)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        length, copies = x.shape[1], self.head_width**2
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        taps = self.shift[:length]
        taps = torch.cat([taps, taps.new_zeros(length - len(taps), self.width)])
        key = convolve(key, taps, self.convolution) + self.shift_skip * key
        kernel = self.diagonal.kernel(length).repeat_interleave(copies, dim=1)
        memory = convolve(self._products(key, value), kernel, self.convolution)
        mixed: Tensor = self.output(self._read(query, memory))
        return mixed

    def extend(self, x: Tensor, cache: H3Cache | None) -> tuple[Tensor, H3Cache]:
        """Map (B, t, width) to (B, t, width) by the recurrence, from the states in the cache."""
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        copies, past = self.head_width**2, None if cache is None else cache.keys
        keys = with_past(key, self.states - 1, past)
        key = convolve_short(keys, self.shift) + self.shift_skip * key
        products = self._products(key, value)
        state = (
            torch.zeros(*products[:, 0].shape, self.states // 2, dtype=_complex(x), device=x.device)
            if cache is None
            else cache.state
        )
        outputs = []
        for product in products.unbind(dim=1):
            y, state = self.diagonal.step(product, state, copies)
            outputs.append(y)
        mixed = self.output(self._read(query, torch.stack(outputs, dim=1)))
        return mixed, H3Cache(keys[:, keys.shape[1] - self.states + 1 :], state)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: the shift's keys, and N numbers for each product."""
        diagonal = self.heads * self.head_width**2 * self.states
        return (min(length, self.states - 1) * self.width + diagonal,)

    def _products(self, key: Tensor, value: Tensor) -> Tensor:
        """Return each head's outer product kvᵀ, (B, S, heads · head_width²)."""
        heads = (*key.shape[:2], self.heads, self.head_width)
        product = key.reshape(heads).unsqueeze(-1) * value.reshape(heads).unsqueeze(-2)
        return product.flatten(2)

    def _read(self, query: Tensor, memory: Tensor) -> Tensor:
        """Return each head's qᵀM, (B, S, width)."""
        heads = (*query.shape[:2], self.heads, self.head_width)
        matrices = memory.reshape(*heads, self.head_width)
        return (query.reshape(heads).unsqueeze(-1) * matrices).sum(dim=-2).flatten(2)


def _complex(x: Tensor) -> torch.dtype:
    return torch.complex128 if x.dtype == torch.float64 else torch.complex64
