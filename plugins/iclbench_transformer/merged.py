"""One head of attention as one step of autograd, for training on a CPU.

Products that all ask the same x add up their gradients while they multiply, so that memory is
passed over less often than operator by operator. Results differ from those in rounding alone. It
can neither be vmapped nor differentiated twice.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from iclbench.nn.fused import rows


def attend(
    x: Tensor,
    query: tuple[Tensor, Tensor],
    output: tuple[Tensor, Tensor],
    mask: Tensor | None = None,
    positions: slice | None = None,
) -> Tensor:
    """softmax(q(x)xᵀ + mask)x through `output`, asked at `positions` or at all: (B, P, width).

    x (B, S, width); `query` and `output` are each a weight (width, width) and a bias (width,), as
    of `linear`; the scale is the query's. `mask` (P, S) is added to the scores.
    """
    mixed: Tensor = _Attend.apply(mask, positions, x, *query, *output)  # type: ignore[no-untyped-call]
    return mixed


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, mask: Tensor | None, positions: slice | None, x: Tensor, *parameters: Tensor
    ) -> Tensor:
        of_query, query_bias, of_output, output_bias = parameters
        asking = x if positions is None else x[:, positions].contiguous()
        query = linear(asking, of_query, query_bias)
        scores = query @ x.mT if mask is None else torch.baddbmm(mask, query, x.mT)
        shares = scores.softmax(dim=-1)
        mixed = shares @ x
        ctx.save_for_backward(x, asking, query, shares, mixed, of_query, of_output)
        ctx.positions = positions
        return linear(mixed, of_output, output_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, asking, query, shares, mixed, of_query, of_output = ctx.saved_tensors
        of_mixed = grad @ of_output
        of_shares = of_mixed @ x.mT
        of_scores = torch.ops.aten._softmax_backward_data(of_shares, shares, -1, x.dtype)
        inner = of_scores @ x  # the gradient in the query
        of_x = None
        if ctx.needs_input_grad[2]:
            of_x = torch.baddbmm(shares.mT @ of_mixed, of_scores.mT, query)
            asked = of_x if ctx.positions is None else of_x[:, ctx.positions]
            asked += inner @ of_query
        return (
            None,
            None,
            of_x,
            rows(inner).mT @ rows(asking) if ctx.needs_input_grad[3] else None,
            rows(inner).sum(0) if ctx.needs_input_grad[4] else None,
            rows(grad).mT @ rows(mixed) if ctx.needs_input_grad[5] else None,
            rows(grad).sum(0) if ctx.needs_input_grad[6] else None,
        )
