"""Attention as it is trained: fewer queries, torch's kernel for a CPU, or merged weights.

Each class is equal to the paper's module except for rounding, which it holds as `attention`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import TrainingContext

from .masks import causal_mask, query_mask

#: Elements of the input above which two products fewer save more than merging the weights costs.
WORTH_MERGING = 20_000


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
        asking = x if self.positions is None else x[:, self.positions].contiguous()
        whole = asking.shape[1] == x.shape[1]
        mask = None
        if self.attention.causal and not whole:
            mask = causal_mask(x.shape[1], x.dtype, x.device)[self.positions]
        # The kernel wants a dimension of heads; the scale is in the query.
        keys = x.unsqueeze(1)
        mixed = scaled_dot_product_attention(
            linear(asking, *query).unsqueeze(1),
            keys,
            keys,
            attn_mask=mask,
            is_causal=self.attention.causal and whole,
            scale=1.0,
        )
        return linear(mixed.squeeze(1), *answer)
