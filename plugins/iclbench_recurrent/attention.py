"""Mixers S_t = diag(a_t) S_{t−1} + k_t v_tᵀ: gated linear attention, retention and HGRN2."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, silu

from . import linear
from .mixer import Form, HeadNorm, RecurrentMixer, join_heads, project, run, split_heads

#: τ of gated linear attention: decays are σ(·)^(1/τ).
TEMPERATURE = 16
#: Rank of the projection that gives gated linear attention's decays.
RANK = 16
#: Base of retention's angles, as for rotary positions.
ANGLE_BASE = 10_000.0


class DecayingAttention(RecurrentMixer):
    """Linear attention with decay in `heads` heads, and an RMSNorm of each head's output."""

    kernel = "linear"
    recurrent = staticmethod(linear.recurrent)
    chunked = staticmethod(linear.chunked)

    def __init__(
        self, width: int, heads: int, key_width: int, value_width: int, init_std: float
    ) -> None:
        super().__init__()
        self.heads = heads
        self.state_shape = (heads, key_width // heads, value_width // heads)
        self.query = project(width, key_width, init_std)
        self.key = project(width, key_width, init_std)
        self.value = project(width, value_width, init_std)
        self.norm = HeadNorm(value_width // heads)
        self.output = project(value_width, width, init_std)

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: S of each head."""
        heads, keys, values = self.state_shape
        return (heads * keys * values,)


class GatedLinearAttention(DecayingAttention):
    """Decays σ(x W₁ W₂ + b)^(1/16) of every key, and a swish gate (Yang et al. 2023)."""

    short = 64

    def __init__(
        self, width: int, heads: int, key_width: int, value_width: int, init_std: float
    ) -> None:
        super().__init__(width, heads, key_width, value_width, init_std)
        self.decay = nn.Sequential(
            project(width, RANK, init_std), project(RANK, key_width, init_std, bias=True)
        )
        self.gate = project(width, value_width, init_std, bias=True)

    def mix(self, x: Tensor, cache: Tensor | None, form: Form) -> tuple[Tensor, Tensor]:
        """See `RecurrentMixer.mix`; the cache is S (B, heads, K, V)."""
        log_decay = logsigmoid(self.decay(x)) / TEMPERATURE
        tensors = (self.query(x), self.key(x), self.value(x), log_decay)
        mixed, state = run(form, *(split_heads(t, self.heads) for t in tensors), state=cache)
        output: Tensor = self.output(join_heads(self.norm(mixed)) * silu(self.gate(x)))
        return output, state


class Retention(DecayingAttention):
    """Decays 1 − 2^(−5−h) of head h, rotated queries and keys, a swish gate (Sun et al. 2023)."""

    def __init__(
        self, width: int, heads: int, key_width: int, value_width: int, init_std: float
    ) -> None:
        super().__init__(width, heads, key_width, value_width, init_std)
        self.gate = project(width, value_width, init_std)
        self.key_width = key_width // heads

    def mix(self, x: Tensor, cache: Any, form: Form) -> tuple[Tensor, Any]:
        """See `RecurrentMixer.mix`; the cache is S (B, heads, K, V) and the number of positions."""
        state, start = (None, 0) if cache is None else cache
        query, key, value = (
            split_heads(layer(x), self.heads) for layer in (self.query, self.key, self.value)
        )
        # The paper's scale of the scores.
        key = key * self.key_width**-0.5
        dtype = torch.promote_types(x.dtype, torch.float32)
        decays = log_decays(self.heads, x.device).to(dtype)
        decays = decays[:, None, None].expand(-1, x.shape[1], 1)
        mixed, state = run(
            form, rotate(query, start), rotate(key, start), value, decays, state=state
        )
        output: Tensor = self.output(join_heads(self.norm(mixed)) * silu(self.gate(x)))
        return output, (state, start + x.shape[1])


class HGRN2(DecayingAttention):
    """Forget gates f = γ + (1 − γ)σ(·), keys 1 − f (Qin et al. 2024).

    `bounds` (layers, width) is one parameter of all layers: γ of layer l is the sum of rows 1 … l
    of its softmax over the layers, so that it grows with depth from 0. The first layer has none.
    """

    short = 64

    def __init__(self, width: int, heads: int, init_std: float) -> None:
        super().__init__(width, heads, width, width, init_std)
        # The norm is over all heads here.
        self.norm = HeadNorm(width)
        self.layer = 0
        self.bounds: nn.Parameter | None = None

    def set_bounds(self, bounds: nn.Parameter, layer: int) -> None:
        """Take γ from the bounds (layers, width) as layer number `layer`, counted from 0."""
        self.layer, self.bounds = layer, bounds

    def mix(self, x: Tensor, cache: Tensor | None, form: Form) -> tuple[Tensor, Tensor]:
        """See `RecurrentMixer.mix`; the cache is S (B, heads, K, V)."""
        log_forget, keys = self.gates(self.key(x))
        tensors = (silu(self.query(x)), keys, self.value(x), log_forget)
        mixed, state = run(form, *(split_heads(t, self.heads) for t in tensors), state=cache)
        output: Tensor = self.output(self.norm(join_heads(mixed)))
        return output, state

    def gates(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return log f and 1 − f of logits (B, S, width)."""
        if self.bounds is None:
            return logsigmoid(logits), (-logits).sigmoid()
        shares = self.bounds.log_softmax(dim=0)
        bound = shares[1 : self.layer + 1].logsumexp(dim=0)
        rest = torch.cat([shares[:1], shares[self.layer + 1 :]]).logsumexp(dim=0)
        # A sum of positive numbers: the logarithm of 1 − (1 − f) is infinite where f is tiny.
        log_forget = torch.logaddexp(bound, rest + logsigmoid(logits))
        return log_forget, rest.exp() * (-logits).sigmoid()


def log_decays(heads: int, device: torch.device | None = None) -> Tensor:
    """Return log(1 − 2^(−5−h)) of the heads h (heads,), float64 (Sun et al. 2023)."""
    # On the device itself: a CUDA graph can't capture a copy to it.
    exponents = -5 - torch.arange(heads, dtype=torch.float64, device=device)
    return (-(2.0**exponents)).log1p()


def rotate(x: Tensor, start: int) -> Tensor:
    """Rotate pairs of neighbouring channels of (B, heads, S, d) at positions start … start + S − 1.

    Pair i turns by 10000^(−2i/d) a position, so that qᵀk depends on the distance only. Dtypes below
    float32 are rotated in float32.
    """
    *_, length, width = x.shape
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    # In float64: an angle of a thousand turns has few digits left in float32.
    positions = torch.arange(start, start + length, dtype=torch.float64, device=x.device)
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device=x.device) / width
    angles = positions[:, None] * ANGLE_BASE**-exponents
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
