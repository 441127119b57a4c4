"""BaseConv as it is trained: stored channel by channel, and computed at the positions needed."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .convolution import convolve_fft, is_direct, lags


class FastBaseConv(nn.Module):
    """A BaseConv layer's output at `positions`, (B, S, C) → (B, P, C), or at all for None.

    Equal to the paper's layer except for rounding. Between the products with the weights, memory
    is laid out channel by channel, so that no product copies its operands.
    """

    def __init__(self, layer: Any, positions: slice | None) -> None:
        super().__init__()
        self.layer, self.positions = layer, slice(None) if positions is None else positions

    def forward(self, u: Tensor) -> Tensor:
        """Map (B, S, C) to (B, P, C)."""
        layer, positions = self.layer, self.positions
        entering = by_channel(u, layer.input) + layer.input_bias
        if is_direct(layer.convolution, u.shape[1]):
            convolved = convolve_by_channel(entering, layer.filter, layer.causal, positions)
        else:
            convolved = convolve_fft(entering, layer.filter, layer.causal)[:, positions]
        gate = by_channel(u[:, positions], layer.gate) + self._at(layer.gate_bias)
        gated = gate * (convolved + self._at(layer.filter_bias))
        mixed: Tensor = gated @ layer.output + self._at(layer.output_bias)
        return mixed

    def _at(self, bias: Tensor) -> Tensor:
        """A bias (C,), or the rows (P, C) of a bias (S, C) at the positions."""
        return bias if bias.ndim == 1 else bias[self.positions]


def by_channel(u: Tensor, weight: Tensor) -> Tensor:
    """u @ weight, (B, S, C) and (C, C) → (B, S, C), stored channel by channel."""
    batch, length, channels = u.shape
    product: Tensor = weight.mT @ u.reshape(-1, channels).mT
    return product.view(weight.shape[-1], batch, length).permute(1, 2, 0)


def convolve_by_channel(u: Tensor, h: Tensor, causal: bool, positions: slice) -> Tensor:
    """The direct convolution of u (B, S, C), stored channel by channel, with the taps h (S, C).

    The result (B, P, C) at `positions` is stored so too.
    """
    lag, seen = lags(u.shape[1], causal, u.device)
    toeplitz = h.mT[:, lag[positions]] * seen[positions]
    return (u.permute(2, 0, 1) @ toeplitz.mT).permute(1, 2, 0)
