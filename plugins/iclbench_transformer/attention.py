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

    Parameters: `qkv` projects (B, S, width) to queries, keys and values of `head_width` for each
    head; `output` projects back.
    """

    #: Whether `extend` can go on from the keys and values of earlier positions.
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
        """(B, S, width) → (B, S, width)."""
        query, key, value = self._heads(self.qkv(x), 3)
        return self._joined(self.mix(query, key, value))

    def at(self, x: Tensor, positions: slice) -> Tensor:
        """The output at some positions alone, which ask all others; (B, S, width) → (B, P, width).

        Equal to `forward` there but for rounding, since fewer queries are multiplied at once.
        """
        size = self.heads * self.head_width
        weight, bias = self.qkv.weight, self.qkv.bias
        (query,) = self._heads(linear(x[:, positions], weight[:size], bias[:size]), 1)
        key, value = self._heads(linear(x, weight[size:], bias[size:]), 2)
        return self._joined(self.mix(query, key, value, positions))

    def extend(self, x: Tensor, kept: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, t, width) → (B, t, width) at positions after those whose keys and values are kept."""
        query, key, value = self._heads(self.qkv(x), 3)
        new = torch.stack([key, value])
        kept = new if kept is None else torch.cat([kept, new], dim=3)
        return self._joined(self.mix(query, kept[0], kept[1])), kept

    def _heads(self, x: Tensor, kinds: int) -> tuple[Tensor, ...]:
        """(B, S, kinds · heads · d_head) → one (B, heads, S, d_head) a kind."""
        split = x.view(*x.shape[:2], kinds, self.heads, self.head_width)
        return split.permute(2, 0, 3, 1, 4).unbind(0)

    def _joined(self, mixed: Tensor) -> Tensor:
        output: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return output

    def seen(self, query: Tensor, key: Tensor, positions: slice | None) -> Tensor:
        """Which of n keys each of t queries may see, (t, n): at `positions`, or the last t."""
        every = torch.arange(key.shape[2], device=query.device)
        asking = every[-query.shape[2] :] if positions is None else every[positions]
        return every <= asking[:, None]

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, n, d_head), mixed for the queries at `positions`, or the last t."""
        whole = positions is None and query.shape[2] == key.shape[2]
        mask = self.seen(query, key, positions) if self.causal and not whole else None
        # The math path alone is full precision on every device, and can be vmapped over replicas
        # where the CPU's flash kernel can't; on sequences this short it is as fast.
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(
                query, key, value, attn_mask=mask, is_causal=self.causal and whole
            )


class LinearAttention(SoftmaxAttention):
    """(QKᵀ/√d_head)V for each head, divided by S if asked (least_squares, eq. 21, with biases)."""

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
        self.extends = not mean  # S is not known before the end

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, positions: slice | None = None
    ) -> Tensor:
        """The values (B, heads, S, d_head), mixed for the queries at `positions`, or at all."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / key.shape[-2]
        if self.causal and positions is None:
            scores = scores.tril(scores.shape[-1] - scores.shape[-2])
        elif self.causal:
            scores = scores * self.seen(query, key, positions)
        return scores @ value
