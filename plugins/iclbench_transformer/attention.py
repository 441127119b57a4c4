"""Multi-head attention, with softmax and without."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

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
        batch, length, width = x.shape
        heads = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = self.mix(query, key, value)
        output: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        return output

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The values (B, heads, S, d_head), mixed over positions."""
        # The math path alone is full precision on every device, and can be vmapped over replicas
        # where the CPU's flash kernel can't; on sequences this short it is as fast.
        with sdpa_kernel(SDPBackend.MATH):
            return scaled_dot_product_attention(query, key, value, is_causal=self.causal)


class LinearAttention(SoftmaxAttention):
    """(QKᵀ/√d_head)V for each head, divided by S if asked (least_squares, eq. 21, with biases)."""

    def __init__(
        self, width: int, heads: int, causal: bool, init_std: float, mean: bool = False
    ) -> None:
        super().__init__(width, heads, causal, init_std)
        self.mean = mean

    def mix(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The values (B, heads, S, d_head), mixed over positions."""
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if self.mean:
            scores = scores / query.shape[-2]
        return (scores.tril() if self.causal else scores) @ value
