"""The training form of BaseConv: stored channel by channel, computed at the needed positions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .convolution import convolve_fft, dtype_of, is_direct, lags


class FastBaseConv(nn.Module):
    """A BaseConv layer's output at `positions`, None for all: (B, S, C) → (B, P, C).

    It equals the paper's layer except for rounding. States are stored channel by channel, the
    layout of the convolution's batched products, so none of them copies its operands.
    """

    def __init__(self, layer: Any, positions: slice | None) -> None:
        super().__init__()
        self.layer, self.positions = layer, slice(None) if positions is None else positions

    def forward(self, u: Tensor) -> Tensor:
        """Map (B, S, C) to (B, P, C)."""
        layer, positions = self.layer, self.positions
        projected = by_channel(u, layer.input) + layer.input_bias
        h = layer.impulse_response(u.shape[1])
        if is_direct(layer.convolution, u.shape[1]):
            convolved = convolve_by_channel(projected, h, layer.causal, positions)
        else:
            # An FFT computes all positions anyway.
            convolved = convolve_fft(projected, h, layer.causal)[:, positions]
        # Only the convolution mixes positions; the gate needs no others than these.
        gate = by_channel(u[:, positions], layer.gate) + self._at(layer.gate_bias)
        gated = gate * (convolved + self._at(layer.filter_bias))
        mixed: Tensor = gated @ layer.output + self._at(layer.output_bias)
        return mixed

    def _at(self, bias: Tensor) -> Tensor:
        """Return a bias (C,) unchanged, and of a bias (S, C) the rows (P, C) at the positions."""
        return bias if bias.ndim == 1 else bias[self.positions]


def by_channel(u: Tensor, weight: Tensor) -> Tensor:
    """Return u @ weight, (B, S, C) and (C, C) → (B, S, C), stored channel by channel."""
    batch, length, channels = u.shape
    # Transposed, so that the product's memory is ordered (C, B, S), without a copy.
    product: Tensor = weight.mT @ u.reshape(-1, channels).mT
    return product.view(weight.shape[-1], batch, length).permute(1, 2, 0)


def convolve_by_channel(u: Tensor, h: Tensor, causal: bool, positions: slice) -> Tensor:
    """Convolve u (B, S, C) with the taps h (S, C) by the direct sum → (B, P, C) at `positions`.

    Both u and the result are stored channel by channel.
    """
    lag, visible = lags(u.shape[1], causal, u.device)
    dtype = dtype_of(u, h)
    with torch.autocast(u.device.type, enabled=False):
        # (C, P, S): the rows of the Toeplitz matrices for the needed positions.
        toeplitz = h.to(dtype).mT[:, lag[positions]] * visible[positions]
        product = u.to(dtype).permute(2, 0, 1) @ toeplitz.mT
    return product.permute(1, 2, 0).to(u.dtype)
