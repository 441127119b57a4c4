"""Multi-head attention with and without softmax."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from iclbench import TrainingContext, initialize

from .fast import FastAttention, MergedAttention, is_plain, merging_pays
from .masks import query_mask

#: Dtypes that attention is computed in.
FULL_PRECISION = (torch.float32, torch.float64)


class SoftmaxAttention(nn.Module):
    """Per head softmax(QKᵀ/√d_head)V (Liu et al., eq. 1, with GPT-2's scale and biases).

    Parameters: `qkv` projects (B, S, width) to the heads' queries, keys and values of width
    `head_width`; `output` projects back.
    """

    #: See `iclbench.ExtendsPositions`. The cache holds keys and values.
    extends = True

    def __init__(
        self, width: int, heads: int, head_width: int, causal: bool, init_std: float
    ) -> None:
        super().__init__()
        self.heads, self.head_width, self.causal = heads, head_width, causal
        self.qkv = nn.Linear(width, 3 * heads * head_width)
        self.output = nn.Linear(heads * head_width, width)
        initialize(self, init_std)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        query, key, value = self.split_heads(self.qkv(x))
        return self.join_heads(self.mix(query, key, value))

    def extend(self, x: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map (B, t, width) to (B, t, width) at the positions that follow those in the cache."""
        query, key, value = self.split_heads(self.qkv(x))
        new = torch.stack([key, value])
        cache = new if cache is None else torch.cat([cache, new], dim=3)
        return self.join_heads(self.mix(query, cache[0], cache[1])), cache

    def split_heads(self, x: Tensor) -> list[Tensor]:
        """Split (B, S, kinds · heads · d_head) into one (B, heads, S, d_head) per kind."""
        kinds = torch.split(x, self.heads * self.head_width, dim=-1)
        return [k.view(*k.shape[:2], self.heads, self.head_width).transpose(1, 2) for k in kinds]

    def join_heads(self, mixed: Tensor) -> Tensor:
        """Project (B, heads, S, d_head) to (B, S, width)."""
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """Mix values (B, heads, n, d_head) for t queries at `positions`, None for the last t.

        Dtypes below float32 are mixed in float32.
        """
        if query.dtype not in FULL_PRECISION:
            return mix_in_float32(self, query, key, value, positions)
        # Written out instead of torch's scaled_dot_product_attention: its fused kernels can't be
        # vmapped on a CPU and may lose precision on a GPU; its math path builds a mask per call.
        scale = 1 / math.sqrt(self.head_width)
        scores = query @ key.mT
        if self.hides_keys(query, positions):
            scores = torch.add(query_mask(query, key, positions), scores, alpha=scale)
        else:
            scores = scores * scale
        return scores.softmax(dim=-1) @ value

    def hides_keys(self, query: Tensor, positions: slice | None) -> bool:
        """Whether some key is hidden from some query; none is from a single query at the end."""
        return self.causal and not (positions is None and query.shape[2] == 1)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: keys and values of all positions."""
        return (2 * self.heads * self.head_width * length,)

    def for_training(self, context: TrainingContext) -> nn.Module | None:
        """See `iclbench.TrainsFaster`."""
        if context.replicas == "leading" or not is_plain(self):
            return None
        # The kernel computes softmax attention, so a subclass with another `mix` can't use it.
        by_kernel = (
            context.takes_any_operator
            and context.device.type == "cpu"
            and type(self).mix is SoftmaxAttention.mix
        )
        if by_kernel and merging_pays(self, context):
            return MergedAttention(self, context.positions)
        if by_kernel or context.positions is not None:
            return FastAttention(self, context.positions, by_kernel=by_kernel)
        return self


class LinearAttention(SoftmaxAttention):
    """Per head (QKᵀ/√d_head)V, divided by S if `mean` (Liu et al., eq. 21, with biases)."""

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        causal: bool,
        init_std: float,
        *,
        mean: bool = False,
    ) -> None:
        super().__init__(width, heads, head_width, causal, init_std)
        self.mean = mean
        self.extends = not mean  # the final S is unknown while generating

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: Σ kvᵀ of each head."""
        return (self.heads * self.head_width**2,)

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """See `SoftmaxAttention.mix`."""
        if query.dtype not in FULL_PRECISION:
            return mix_in_float32(self, query, key, value, positions)
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / key.shape[-2]
        if self.causal and positions is None:
            scores = scores.tril(scores.shape[-1] - scores.shape[-2])
        elif self.causal:
            scores = scores * (query_mask(query, key, positions) == 0)
        return scores @ value


def mix_in_float32(
    attention: SoftmaxAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    positions: slice | None,
) -> Tensor:
    """Return the attention's `mix` of inputs of a lower dtype, computed in float32."""
    with torch.autocast(query.device.type, enabled=False):
        mixed = attention.mix(query.float(), key.float(), value.float(), positions)
    return mixed.to(query.dtype)
