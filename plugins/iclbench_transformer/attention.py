"""Multi-head attention, with softmax and without."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import linear, scaled_dot_product_attention

from iclbench import initialize


class SoftmaxAttention(nn.Module):
    """softmax(QKᵀ/√d_head)V for each head (least_squares, eq. 1, with GPT-2's scale and biases).

    Parameters: `qkv` projects (B, S, width) to queries, keys and values; `output` projects back.
    """

    def __init__(self, width: int, heads: int, causal: bool, init_std: float) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        initialize(self, init_std)

    def forward(self, x: Tensor) -> Tensor:
        """(B, S, width) → (B, S, width)."""
        query, key, value = self._heads(self.qkv(x), 3)
        return self._joined(self.mix(query, key, value))

    def at(self, x: Tensor, positions: slice) -> Tensor:
        """The output at some positions alone, which ask all others; (B, S, width) → (B, P, width).

        Equal to `forward` there but for rounding, since fewer queries are multiplied at once.
        """
        width = x.shape[2]
        weight, bias = self.qkv.weight, self.qkv.bias
        (query,) = self._heads(linear(x[:, positions], weight[:width], bias[:width]), 1)
        key, value = self._heads(linear(x, weight[width:], bias[width:]), 2)
        return self._joined(self.mix(query, key, value, positions))

    def _heads(self, x: Tensor, kinds: int) -> tuple[Tensor, ...]:
        """(B, S, kinds · width) → one (B, heads, S, d_head) a kind."""
        batch, length, width = x.shape
        split = x.view(batch, length, kinds, self.heads, width // (kinds * self.heads))
        return split.permute(2, 0, 3, 1, 4).unbind(0)

    def _joined(self, mixed: Tensor) -> Tensor:
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def seen(self, query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
        """Which keys each query may see, (Q, S), if it is causal."""
        every = torch.arange(key.shape[2], device=query.device)
        asking = every if positions is None else every[positions]
        return every <= asking[:, None]

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, S, d_head), mixed for the queries at `positions`, or at all."""
        if not self.causal or positions is None:
            mask, causal = None, self.causal
        else:
            mask, causal = self.seen(query, key, positions), False
        # The math path alone is full precision on every device, and can be vmapped over replicas
        # where the CPU's flash kernel can't; on sequences this short it is as fast.
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)


class LinearAttention(SoftmaxAttention):
    """(QKᵀ/√d_head)V for each head, divided by S if asked (least_squares, eq. 21, with biases)."""

    def __init__(
        self, width: int, heads: int, causal: bool, init_std: float, mean: bool = False
    ) -> None:
        super().__init__(width, heads, causal, init_std)
        self.mean = mean

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, S, d_head), mixed for the queries at `positions`, or at all."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / key.shape[-2]
        if self.causal and positions is None:
            scores = scores.tril()
        elif self.causal:
            scores = scores * self.seen(query, key, positions)
        return scores @ value
