"""Multi-head attention, with softmax and without."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

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
        return self._merge(self.mix(*self._heads(x)))

    def extend(self, x: Tensor, kept: Tensor | None) -> tuple[Tensor, Tensor]:
        """(B, t, width) → (B, t, width) at positions after those whose keys and values are kept."""
        query, key, value = self._heads(x)
        new = torch.stack([key, value])
        kept = new if kept is None else torch.cat([kept, new], dim=3)
        return self._merge(self.mix(query, kept[0], kept[1])), kept

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, _ = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.heads, self.head_width)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        return query, key, value

    def _merge(self, mixed: Tensor) -> Tensor:
        batch, _, length, _ = mixed.shape
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, -1))
        return output

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The values (B, heads, n, d_head), mixed over positions for the last t of them."""
        t, n = query.shape[2], key.shape[2]
        seen = None
        if self.causal and t < n:
            seen = torch.ones(t, n, dtype=torch.bool, device=query.device).tril(n - t)
        # The math path alone is full precision on every device, and can be vmapped over replicas
        # where the CPU's flash kernel can't; on sequences this short it is as fast.
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(
                query, key, value, attn_mask=seen, is_causal=self.causal and seen is None
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

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The values (B, heads, S, d_head), mixed over positions."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / query.shape[-2]
        if self.causal:
            scores = scores.tril(scores.shape[-1] - scores.shape[-2])
        return scores @ value
