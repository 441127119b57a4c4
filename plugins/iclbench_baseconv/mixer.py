"""The BaseConv layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .convolution import by_channel, convolve


class BaseConvMixer(nn.Module):
    """((u W_gate + b_gate) ⊙ (h ∗ (u W_in + b_in) + b_conv)) W_out + b_out (eq. 2 and 40).

    Parameters, for width C and S positions: `gate`, `input` and `output` are weights (C, C) that
    multiply rows from the right, as in the paper; `filter` holds the taps (S, C); the biases
    `gate_bias`, `input_bias`, `filter_bias`, `output_bias` are (C,) or, with bias=position, (S, C).
    """

    def __init__(
        self, width: int, length: int, causal: bool, *, bias: str, convolution: str, init_std: float
    ) -> None:
        super().__init__()
        self.causal, self.convolution = causal, convolution
        shape = (length, width) if bias == "position" else (width,)
        self.gate = nn.Parameter(init_std * torch.randn(width, width))
        self.input = nn.Parameter(init_std * torch.randn(width, width))
        self.output = nn.Parameter(init_std * torch.randn(width, width))
        # Taps of N(0, 1/S) keep the size of what they convolve.
        self.filter = nn.Parameter(length**-0.5 * torch.randn(length, width))
        self.gate_bias = nn.Parameter(torch.zeros(shape))
        self.input_bias = nn.Parameter(torch.zeros(shape))
        self.filter_bias = nn.Parameter(torch.zeros(shape))
        self.output_bias = nn.Parameter(torch.zeros(shape))

    def forward(self, u: Tensor) -> Tensor:
        """(B, S, C) → (B, S, C) for S = length."""
        return self._gated(u, slice(None))

    def at(self, u: Tensor, positions: slice) -> Tensor:
        """The output at some positions alone, (B, S, C) → (B, P, C)."""
        return self._gated(u, positions)

    def _gated(self, u: Tensor, positions: slice) -> Tensor:
        # In training only, so that what is evaluated stays as it is to the last bit.
        product = by_channel if self.training else torch.matmul
        entering = product(u, self.input) + self.input_bias
        convolved = convolve(entering, self.filter, self.causal, self.convolution, positions)
        gate = product(u[:, positions], self.gate) + self._own(self.gate_bias, positions)
        gated = gate * (convolved + self._own(self.filter_bias, positions))
        return gated @ self.output + self._own(self.output_bias, positions)

    @staticmethod
    def _own(bias: Tensor, positions: slice) -> Tensor:
        """A bias (C,), or its rows (P, C) at the positions."""
        return bias if bias.ndim == 1 else bias[positions]
