"""Attention as it is trained: fewer queries, torch's kernel for a CPU, or merged weights.

Each class is equal to the paper's module except for rounding, which it holds as `attention`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import TrainingContext

from .masks import causal_mask, query_mask

#: Elements of the input above which two products fewer save more than merging the weights costs.
WORTH_MERGING = 20_000

#: Positions per width up to which keeping scores for the backward pass beats computing them again.
LONGEST = 4


def is_plain(attention: Any) -> bool:
    """Whether both projections are linear layers, whose weights may be cut and merged."""
    return type(attention.qkv) is type(attention.output) is nn.Linear


def merging_pays(attention: Any, context: TrainingContext) -> bool:
    """Whether `MergedAttention` applies to softmax attention and saves time."""
    width, length = attention.qkv.in_features, context.length
    return (
        length is not None
        and attention.heads == 1
        and attention.head_width >= width
        and context.batch_size * length * width >= WORTH_MERGING
        and length <= LONGEST * width
        and context.dtype in (torch.float32, torch.float64)
        and context.autocast is None
    )


class FastAttention(nn.Module):
    """Attention with queries at `positions` only, None for all, and perhaps torch's CPU kernel.

    The kernel can't be vmapped. It is for softmax.
    """

    def __init__(self, attention: Any, positions: slice | None, *, by_kernel: bool) -> None:
        super().__init__()
        self.attention, self.positions, self.by_kernel = attention, positions, by_kernel

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, P, width)."""
        query, key, value = self._projections(x)
        return self.attention.join_heads(self._mix(query, key, value))  # type: ignore[no-any-return]

    def _projections(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries at the positions, keys and values: (B, heads, P or S, d_head)."""
        attention, length = self.attention, x.shape[1]
        if self.positions is None:
            query, key, value = attention.split_heads(attention.qkv(x))
            return query, key, value
        if 2 * len(range(*self.positions.indices(length))) >= length:
            # Cutting the weights would cost more than some queries too many.
            query, key, value = attention.split_heads(attention.qkv(x))
            return query[:, :, self.positions], key, value
        size = attention.heads * attention.head_width
        weights, biases = (
            torch.split(t, [size, 2 * size]) for t in (attention.qkv.weight, attention.qkv.bias)
        )
        asking = x[:, self.positions].contiguous()
        (query,) = attention.split_heads(linear(asking, weights[0], biases[0]))
        key, value = attention.split_heads(linear(x, weights[1], biases[1]))
        return query, key, value

    def _mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """As the attention's `mix`; its kernel is causal only for as many queries as keys."""
        attention = self.attention
        if not self.by_kernel:
            mixed: Tensor = attention.mix(query, key, value, self.positions)
            return mixed
        if query.dtype not in (torch.float32, torch.float64):
            with torch.autocast(query.device.type, enabled=False):
                return self._mix(query.float(), key.float(), value.float()).to(query.dtype)
        masks = attention.hides_keys(query, self.positions)
        whole = query.shape[2] == key.shape[2]
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=query_mask(query, key, self.positions) if masks and not whole else None,
            is_causal=masks and whole,
            scale=1 / math.sqrt(attention.head_width),
        )


class MergedAttention(nn.Module):
    """softmax(xW_QKxᵀ/√d_head)xW_OV of one head, (B, S, width) → (B, P, width).

    W_QK = W_QW_Kᵀ and W_OV = W_VW_O are multiplied first: two products with x instead of four.
    The keys' bias is left out, since it adds the same to all scores of a query, which softmax
    ignores. Its gradient is then 0, and rounding elsewhere.
    """

    def __init__(self, attention: Any, positions: slice | None) -> None:
        super().__init__()
        self.attention, self.positions = attention, positions

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, P, width)."""
        qkv, output = self.attention.qkv, self.attention.output
        query_weight, key_weight, value_weight = qkv.weight.chunk(3)
        query_bias, _, value_bias = qkv.bias.chunk(3)
        key_weight = key_weight / math.sqrt(self.attention.head_width)
        query = key_weight.mT @ query_weight, query_bias @ key_weight
        answer = (
            output.weight @ value_weight,
            torch.addmv(output.bias, output.weight, value_bias),
        )
        mask = causal_mask(x.shape[1], x.dtype, x.device) if self.attention.causal else None
        if mask is not None and self.positions is not None:
            mask = mask[self.positions]
        mixed: Tensor = _Attend.apply(mask, self.positions, x, *query, *answer)  # type: ignore[no-untyped-call]
        return mixed


class _Attend(torch.autograd.Function):
    """softmax(q(x)xᵀ + mask)x through an output map, as one step of autograd.

    Gradients of the products with x are added up while they are computed, so that memory is passed
    over less often. It can neither be vmapped nor differentiated twice.
    """

    @staticmethod
    def forward(
        ctx: Any, mask: Tensor | None, positions: slice | None, x: Tensor, *parameters: Tensor
    ) -> Tensor:
        query_weight, query_bias, output_weight, output_bias = parameters
        asking = x if positions is None else x[:, positions].contiguous()
        query = linear(asking, query_weight, query_bias)
        scores = query @ x.mT if mask is None else torch.baddbmm(mask, query, x.mT)
        shares = scores.softmax(dim=-1)
        mixed = shares @ x
        ctx.save_for_backward(x, asking, query, shares, mixed, query_weight, output_weight)
        ctx.positions = positions
        return linear(mixed, output_weight, output_bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, asking, query, shares, mixed, query_weight, output_weight = ctx.saved_tensors
        mixed_grad = grad @ output_weight
        shares_grad = mixed_grad @ x.mT
        scores_grad = torch.ops.aten._softmax_backward_data(shares_grad, shares, -1, x.dtype)
        query_grad = scores_grad @ x
        x_grad = None
        if ctx.needs_input_grad[2]:
            x_grad = torch.baddbmm(shares.mT @ mixed_grad, scores_grad.mT, query)
            asking_grad = x_grad if ctx.positions is None else x_grad[:, ctx.positions]
            asking_grad += query_grad @ query_weight
        return (
            None,
            None,
            x_grad,
            _rows(query_grad).mT @ _rows(asking) if ctx.needs_input_grad[3] else None,
            _rows(query_grad).sum(0) if ctx.needs_input_grad[4] else None,
            _rows(grad).mT @ _rows(mixed) if ctx.needs_input_grad[5] else None,
            _rows(grad).sum(0) if ctx.needs_input_grad[6] else None,
        )


def _rows(t: Tensor) -> Tensor:
    """(..., n) → (N, n)."""
    return t.reshape(-1, t.shape[-1])
