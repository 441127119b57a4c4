"""A BaseConv layer as one step of autograd, for training on a CPU.

Biases are added while a product is made, gradients while they are, and a Toeplitz matrix is copied
from its taps in windows rather than gathered, so that memory is passed over less often. Results
differ from the operators one by one in rounding alone. It can neither be vmapped nor differentiated
twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from iclbench.nn.fused import rows

from .convolution import is_direct

if TYPE_CHECKING:
    from .mixer import BaseConvMixer


def usable(u: Tensor, layer: BaseConvMixer) -> bool:
    """Whether `mix` is there for u (B, S, C) and this layer."""
    return (
        layer.gate_bias.ndim == 1
        and len(u) > 0
        and u.shape[1] == layer.length
        and is_direct(layer.convolution, u.shape[1])
        and u.device.type == "cpu"
        and u.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
    )


def mix(u: Tensor, layer: BaseConvMixer, positions: slice) -> Tensor:
    """The layer's output at `positions`, (B, S, C) → (B, P, C), by direct convolution."""
    mixed: Tensor = _Mix.apply(  # type: ignore[no-untyped-call]
        layer.causal,
        None if positions == slice(None) else positions,
        u,
        layer.gate,
        layer.input,
        layer.output,
        layer.filter,
        layer.gate_bias,
        layer.input_bias,
        layer.filter_bias,
        layer.output_bias,
    )
    return mixed


class _Mix(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, causal: bool, positions: slice | None, u: Tensor, *parameters: Tensor
    ) -> Tensor:
        gate, entry, output, taps, gate_bias, entry_bias, filter_bias, output_bias = parameters
        batch, _, channels = u.shape
        asked = u if positions is None else u[:, positions]
        # All is in memory channel by channel between the first products and the last.
        entered = torch.addmm(entry_bias[:, None], entry.mT, rows(u).mT).view(channels, batch, -1)
        matrix = toeplitz(taps, causal)
        if positions is not None:
            matrix = matrix[:, :, positions].contiguous()
        convolved = torch.baddbmm(filter_bias[:, None, None], entered, matrix)
        opened = torch.addmm(gate_bias[:, None], gate.mT, rows(asked).mT).view_as(convolved)
        gated = opened * convolved
        ctx.save_for_backward(u, entered, matrix, convolved, opened, gated, gate, entry, output)
        ctx.causal, ctx.positions = causal, positions
        mixed = torch.addmm(output_bias, gated.view(channels, -1).mT, output)
        return mixed.view(batch, -1, output.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        u, entered, matrix, convolved, opened, gated, gate, entry, output = ctx.saved_tensors
        channels, length, positions = len(entered), u.shape[1], ctx.positions
        asked = rows(u if positions is None else u[:, positions])
        of_mixed = rows(grad)
        of_gated = (output @ of_mixed.mT).view_as(gated)
        of_convolved = of_gated * opened
        of_opened = of_gated.mul_(convolved).view(channels, -1)
        of_entered = (of_convolved @ matrix.mT).view(channels, -1)
        of_matrix = entered.mT @ of_convolved
        if positions is not None:
            whole = of_matrix.new_zeros(channels, length, length)
            whole[:, :, positions] = of_matrix
            of_matrix = whole
        of_u = None
        if ctx.needs_input_grad[2]:
            of_u = (of_entered.mT @ entry.mT).view_as(u)
            if positions is None:
                rows(of_u).addmm_(of_opened.mT, gate.mT)
            else:
                of_u[:, positions] += (of_opened.mT @ gate.mT).view(len(u), -1, u.shape[2])
        return (
            None,
            None,
            of_u,
            asked.mT @ of_opened.mT,
            rows(u).mT @ of_entered.mT,
            gated.view(channels, -1) @ of_mixed,
            of_taps(of_matrix, ctx.causal),
            of_opened.sum(1),
            of_entered.sum(1),
            of_convolved.sum((1, 2)),
            of_mixed.sum(0),
        )


def toeplitz(taps: Tensor, causal: bool) -> Tensor:
    """M[c, s, t] = h[t − s, c]; where s > t it is 0 or, circular, h[t − s + S, c]; (C, S, S)."""
    length = len(taps)
    before = torch.zeros_like(taps[1:]) if causal else taps[1:]
    windows = torch.cat([before, taps]).mT.contiguous().unfold(1, length, 1)
    return windows.flip(1)


def of_taps(of_matrix: Tensor, causal: bool) -> Tensor:
    """The gradient in the taps, (S, C), of that in `toeplitz`: sums along diagonals."""
    channels, length, _ = of_matrix.shape
    # Rows one element longer than the windows they are read in begin one further each.
    rows = of_matrix.new_zeros(channels, length, 2 * length)
    rows[:, :, :length] = of_matrix.flip(1)
    size = 2 * length - 1
    shifted = rows.as_strided((channels, length, size), (2 * length * length, size, 1))
    sums = shifted.sum(1)
    found = sums[:, length - 1 :]
    if not causal:
        found[:, 1:] += sums[:, : length - 1]
    return found.mT
