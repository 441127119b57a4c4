"""Training forms of attention: fewer queries, torch's CPU kernel, or merged weights.

They equal the paper's module, which they hold as `attention`, except for rounding.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import TrainingContext

from .masks import causal_mask, query_mask

#: Input elements from which saving two products outweighs the cost of merging the weights.
WORTH_MERGING = 20_000


def is_plain(attention: Any) -> bool:
    """Whether both projections are plain linear layers, whose weights can be split and merged."""
    return type(attention.qkv) is type(attention.output) is nn.Linear


def merging_pays(attention: Any, context: TrainingContext) -> bool:
    """Whether `MergedAttention` applies to this softmax attention and saves time.

    It needs one head at least as wide as the model, float32 or float64 without autocast, and large
    inputs.
    """
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
    """Attention with queries at `positions` only, None for all.

    With `by_kernel`, softmax attention uses torch's fused CPU kernel, which can't be vmapped.
    """

    def __init__(self, attention: Any, positions: slice | None, *, by_kernel: bool) -> None:
        super().__init__()
        self.attention, self.positions, self.by_kernel = attention, positions, by_kernel

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, P, width)."""
        query, key, value = self._projections(x)
        return self.attention.join_heads(self._mix(query, key, value))  # type: ignore[no-any-return]

    def _projections(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (B, heads, P, d_head) and keys and values (B, heads, S, d_head)."""
        attention, length = self.attention, x.shape[1]
        if self.positions is None:
            query, key, value = attention.split_heads(attention.qkv(x))
            return query, key, value
        if 2 * len(range(*self.positions.indices(length))) >= length:
            # Splitting the weights would cost more than the unused queries.
            query, key, value = attention.split_heads(attention.qkv(x))
            return query[:, :, self.positions], key, value
        size = attention.heads * attention.head_width
        weights, biases = (
            torch.split(t, [size, 2 * size]) for t in (attention.qkv.weight, attention.qkv.bias)
        )
        querying = x[:, self.positions].contiguous()
        (query,) = attention.split_heads(linear(querying, weights[0], biases[0]))
        key, value = attention.split_heads(linear(x, weights[1], biases[1]))
        return query, key, value

    def _mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Mix values as the attention's `mix` does, by torch's kernel if `by_kernel`."""
        attention = self.attention
        if not self.by_kernel:
            mixed: Tensor = attention.mix(query, key, value, self.positions)
            return mixed
        if query.dtype not in (torch.float32, torch.float64):
            with torch.autocast(query.device.type, enabled=False):
                return self._mix(query.float(), key.float(), value.float()).to(query.dtype)
        masked = attention.hides_keys(query, self.positions)
        # `is_causal` aligns the first query with the first key, so it needs all queries.
        all_queries = query.shape[2] == key.shape[2]
        mask = query_mask(query, key, self.positions) if masked and not all_queries else None
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=masked and all_queries,
            scale=1 / math.sqrt(attention.head_width),
        )


class MergedAttention(nn.Module):
    """One head as softmax(xW_QKxᵀ/√d_head)xW_OV, (B, S, width) → (B, P, width).

    W_QK = W_QW_Kᵀ and W_OV = W_VW_O are multiplied first, so x takes two products instead of four.
    The keys' bias adds the same number to all scores of a query, which softmax ignores, so it is
    left out. Its gradient is exactly 0 here and rounding error in the paper's module.
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
        merged_query = key_weight.mT @ query_weight, query_bias @ key_weight
        merged_output = (
            output.weight @ value_weight,
            torch.addmv(output.bias, output.weight, value_bias),
        )
        querying = x if self.positions is None else x[:, self.positions].contiguous()
        all_queries = querying.shape[1] == x.shape[1]
        mask = None
        if self.attention.causal and not all_queries:
            mask = causal_mask(x.shape[1], x.dtype, x.device)[self.positions]
        # The kernel expects a dimension of heads. The query already includes the scale.
        keys = x.unsqueeze(1)
        mixed = scaled_dot_product_attention(
            linear(querying, *merged_query).unsqueeze(1),
            keys,
            keys,
            attn_mask=mask,
            is_causal=self.attention.causal and all_queries,
            scale=1.0,
        )
        return linear(mixed.squeeze(1), *merged_output)
