"""The BaseConv layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from iclbench import TrainingContext

from .convolution import convolve
from .fast import FastBaseConv


class BaseConvMixer(nn.Module):
    """((u W_gate + b_gate) ⊙ (h ∗ (u W_in + b_in) + b_conv)) W_out + b_out (eq. 2 and 40).

    Parameters for width C and S positions: `gate`, `input` and `output` are weights (C, C) that
    multiply rows from the right, as in the paper. `filter` holds the taps (S, C), or the first ones
    (taps, C), where the others are 0. The biases `gate_bias`, `input_bias`, `filter_bias` and
    `output_bias` are (C,), or (S, C) with bias=position.
    """

    def __init__(
        self,
        width: int,
        length: int,
        causal: bool,
        *,
        bias: str,
        convolution: str,
        init_std: float,
        taps: int | None = None,
    ) -> None:
        super().__init__()
        self.causal, self.convolution, self.is_short = causal, convolution, taps is not None
        taps = taps or length
        shape = (length, width) if bias == "position" else (width,)
        self.gate = nn.Parameter(init_std * torch.randn(width, width))
        self.input = nn.Parameter(init_std * torch.randn(width, width))
        self.output = nn.Parameter(init_std * torch.randn(width, width))
        # The variance 1/taps preserves the scale of the convolved states.
        self.filter = nn.Parameter(taps**-0.5 * torch.randn(taps, width))
        self.gate_bias = nn.Parameter(torch.zeros(shape))
        self.input_bias = nn.Parameter(torch.zeros(shape))
        self.filter_bias = nn.Parameter(torch.zeros(shape))
        self.output_bias = nn.Parameter(torch.zeros(shape))

    def forward(self, u: Tensor) -> Tensor:
        """Map (B, S, C) to (B, S, C) for S ≤ length; = where circular or with bias=position."""
        projected = u @ self.input + self.input_bias
        h = self.impulse_response(u.shape[1])
        convolved = convolve(projected, h, self.causal, self.convolution)
        # There is no activation function: this product is the layer's only nonlinearity.
        gated = (u @ self.gate + self.gate_bias) * (convolved + self.filter_bias)
        return gated @ self.output + self.output_bias

    def impulse_response(self, length: int) -> Tensor:
        """Return the taps at all lags, (length, C)."""
        if not self.is_short:
            # Later lags than the last position would wrap around in the convolution by FFT.
            return self.filter[:length] if self.causal else self.filter
        taps = min(length, len(self.filter))
        return pad(self.filter[:taps], (0, 0, 0, length - taps))

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: the inputs that later convolutions read."""
        read = min(length, len(self.filter) - 1) if self.is_short else length
        return (read * self.filter.shape[1],)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`."""
        return None if context.replicas == "leading" else FastBaseConv(self, context.positions)
