"""The mixers DeltaNet, Gated DeltaNet, and DeltaProduct with several updates per position."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize, silu, softplus

from . import delta
from .mixer import (
    Form,
    HeadNorm,
    RecurrentMixer,
    ShortConvolution,
    join_heads,
    project,
    run,
    split_heads,
    step_bias,
)

#: Norms of queries and keys count as at least this, so that zeros have a gradient.
SMALLEST_NORM = 1e-6


class DeltaNet(RecurrentMixer):
    """S_t = (I − β_t k_t k_tᵀ) S_{t−1} + β_t k_t v_tᵀ with unit keys (Yang et al. 2024).

    With `updates` n > 1, every position makes n updates, each with its own key, value and β
    (DeltaProduct, Siems et al. 2025). β is in (0, 1), or in (0, 2) with `negative_eigenvalues`,
    where I − βkkᵀ has an eigenvalue 1 − β in (−1, 1) (Grazzi et al. 2024).
    """

    kernel = "delta"
    recurrent = staticmethod(delta.recurrent)
    chunked = staticmethod(delta.chunked)

    def __init__(
        self,
        width: int,
        heads: int,
        key_width: int,
        value_width: int,
        init_std: float,
        *,
        negative_eigenvalues: bool = False,
        updates: int = 1,
    ) -> None:
        super().__init__()
        self.heads, self.updates = heads, updates
        self.state_shape = (heads, key_width // heads, value_width // heads)
        self.largest_beta = 2.0 if negative_eigenvalues else 1.0
        widths = (key_width, updates * key_width, updates * value_width)
        self.query, self.key, self.value = (project(width, w, init_std) for w in widths)
        convolutions = [ShortConvolution(w) for w in widths]
        self.query_taps, self.key_taps, self.value_taps = convolutions
        self.beta = project(width, updates * heads, init_std)
        self.norm = HeadNorm(value_width // heads)
        self.output = project(value_width, width, init_std)

    def mix(self, x: Tensor, cache: Any, form: Form) -> tuple[Tensor, Any]:
        """See `RecurrentMixer.mix`; the cache is S and the inputs kept by the convolutions."""
        state, *kept = (None, None, None, None) if cache is None else cache
        query, kept[0] = self.query_taps(self.query(x), kept[0])
        key, kept[1] = self.key_taps(self.key(x), kept[1])
        value, kept[2] = self.value_taps(self.value(x), kept[2])
        beta = self.largest_beta * self.beta(x).sigmoid()
        query = normalize(split_heads(query, self.heads), dim=-1, eps=SMALLEST_NORM)
        key = normalize(self.split_updates(key), dim=-1, eps=SMALLEST_NORM)
        value, beta = self.split_updates(value), self.split_updates(beta)
        log_decay = split_heads(self.log_decay(x), self.heads)
        mixed, state = run(form, query, key, value, beta, log_decay, state=state)
        return self.finish(join_heads(self.norm(mixed)), x), (state, *kept)

    def split_updates(self, x: Tensor) -> Tensor:
        """Map (B, S, updates · heads · d) to (B, heads, S · updates, d)."""
        prompts, length, _ = x.shape
        return split_heads(x.reshape(prompts, length * self.updates, -1), self.heads)

    def log_decay(self, x: Tensor) -> Tensor:
        """Return the logarithm of each head's decay (B, S, heads)."""
        return torch.zeros_like(x[..., :1]).expand(-1, -1, self.heads)

    def finish(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Map the heads' outputs (B, S, value width) and the input to (B, S, width)."""
        output: Tensor = self.output(mixed)
        return output

    def state_sizes(self, length: int) -> tuple[int, ...]:
        """See `iclbench.StatesSize`: S of each head, and the convolutions' last inputs."""
        heads, keys, values = self.state_shape
        kept = self.query_taps.kept + self.key_taps.kept + self.value_taps.kept
        return (heads * keys * values + kept,)


class GatedDeltaNet(DeltaNet):
    """DeltaNet with decays exp(−A softplus(x w + b)) and a swish gate.

    Yang, Kautz and Hatamizadeh 2024. `log_rate` (heads,) is log A.
    """

    kernel = "gated-delta"

    def __init__(
        self,
        width: int,
        heads: int,
        key_width: int,
        value_width: int,
        init_std: float,
        *,
        negative_eigenvalues: bool = False,
    ) -> None:
        super().__init__(
            width,
            heads,
            key_width,
            value_width,
            init_std,
            negative_eigenvalues=negative_eigenvalues,
        )
        self.decay = project(width, heads, init_std, bias=True)
        self.decay.bias = nn.Parameter(step_bias(heads))
        # A is uniform in (0, 16); the lower end keeps its logarithm finite.
        self.log_rate = nn.Parameter(torch.empty(heads).uniform_(1e-3, 16).log())
        self.gate = project(width, value_width, init_std)

    def log_decay(self, x: Tensor) -> Tensor:
        """Return the logarithm of each head's decay (B, S, heads)."""
        # Added outside the product: autocast would round the sum to its own dtype.
        return -self.log_rate.exp() * softplus(linear(x, self.decay.weight) + self.decay.bias)

    def finish(self, mixed: Tensor, x: Tensor) -> Tensor:
        """Map the heads' outputs (B, S, value width) and the input to (B, S, width)."""
        return super().finish(mixed * silu(self.gate(x)), x)
