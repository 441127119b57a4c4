"""RMSNorm, rotary attention, SwiGLU and their stack.

Submodules have the names of `transformers`' LlamaModel, so its weights can be copied by name.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from iclbench import initialize


class RMSNorm(nn.Module):
    """x / √(mean x² + ε) ⊙ weight, in float32 at least."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, width) to (…, width)."""
        precise = x.to(_at_least_float32(x))
        scale = (precise.square().mean(dim=-1, keepdim=True) + self.epsilon).rsqrt()
        return self.weight * (precise * scale).to(x.dtype)


class RotaryAttention(nn.Module):
    """Causal softmax attention whose queries and keys are rotated by their positions.

    Each pair (i, i + d/2) of a head's d channels turns by position · base^(−2i/d).
    """

    def __init__(self, width: int, heads: int, kv_heads: int, base: float) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, width // heads
        self.base = base
        self.q_proj = nn.Linear(width, heads * self.head_width, bias=False)
        self.k_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.v_proj = nn.Linear(width, kv_heads * self.head_width, bias=False)
        self.o_proj = nn.Linear(heads * self.head_width, width, bias=False)

    def extend(self, x: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map (B, t, width) to (B, t, width) at the positions after those in the cache.

        The cache holds rotated keys and values, (2, B, kv_heads, n, head_width).
        """
        start = 0 if cache is None else cache.shape[3]
        query, key = (self._rotate(self._heads(p(x)), start) for p in (self.q_proj, self.k_proj))
        new = torch.stack([key, self._heads(self.v_proj(x))])
        cache = new if cache is None else torch.cat([cache, new], dim=3)
        # Consecutive query heads share a head of keys and values.
        key, value = cache.repeat_interleave(self.heads // self.kv_heads, dim=2).unbind()
        scores = query @ key.mT / math.sqrt(self.head_width)
        count, total = scores.shape[-2:]
        hidden = torch.ones(count, total, dtype=torch.bool, device=x.device)
        scores = scores.masked_fill(hidden.triu(total - count + 1), -math.inf)
        weights = scores.softmax(dim=-1, dtype=_at_least_float32(x)).to(x.dtype)
        return self.o_proj((weights @ value).transpose(1, 2).flatten(2)), cache

    def _heads(self, x: Tensor) -> Tensor:
        """Split (B, S, heads · d) into (B, heads, S, d)."""
        return x.view(*x.shape[:2], -1, self.head_width).transpose(1, 2)

    def _rotate(self, x: Tensor, start: int) -> Tensor:
        """Rotate (B, heads, S, d) by the positions from `start` on."""
        half = self.head_width // 2
        # In float64: an angle of a thousand turns has few digits left in float32.
        exponent = torch.arange(half, dtype=torch.float64, device=x.device) / half
        steps = torch.arange(start, start + x.shape[2], dtype=torch.float64, device=x.device)
        angle = steps.unsqueeze(1) * self.base**-exponent
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) ⊙ W_up x)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        output: Tensor = self.down_proj(silu(self.gate_proj(x)) * self.up_proj(x))
        return output


class LlamaBlock(nn.Module):
    """x + attention(norm x), then x + SwiGLU(norm x)."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width, heads = config.width, config.heads
        self.input_layernorm = RMSNorm(width, config.epsilon)
        self.self_attn = RotaryAttention(width, heads, config.kv_heads or heads, config.rope_base)
        self.post_attention_layernorm = RMSNorm(width, config.epsilon)
        self.mlp = SwiGLU(width, config.hidden_size)

    def extend(self, x: Tensor, cache: Tensor | None) -> tuple[Tensor, Tensor]:
        """Map (B, t, width) to (B, t, width), with the attention's cache."""
        mixed, cache = self.self_attn.extend(self.input_layernorm(x), cache)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), cache


class LlamaBackbone(nn.Module):
    """Blocks and a final norm, (B, S, width) → (B, S, width)."""

    #: See `iclbench.ExtendsPositions`. The cache holds that of each block.
    extends = True

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(LlamaBlock(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.width, config.epsilon)
        initialize(self, config.init_std)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, width) to (B, S, width)."""
        return self.extend(x, None)[0]

    def extend(self, x: Tensor, cache: list[Tensor] | None) -> tuple[Tensor, list[Tensor]]:
        """Map (B, t, width) to (B, t, width) at the positions after those in the cache."""
        caches: list[Tensor] = []
        for index, block in enumerate(self.layers):
            past = None if cache is None else cache[index]
            x, extended = block.extend(x, past)  # type: ignore[operator]
            caches.append(extended)
        return self.norm(x), caches

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: keys and values of all positions."""
        sizes = []
        for block in self.layers:
            attention: Any = block.self_attn
            sizes.append(2 * attention.kv_heads * attention.head_width * length)
        return tuple(sizes)


def _at_least_float32(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)
