"""The architecture `hyena-lite`: a gated convolution whose filters decay exponentially."""

import torch
from torch import Tensor, nn

from iclbench import Entry, SequenceArchitecture, SequenceConfig, hookimpl, initialize


class HyenaLiteMixer(nn.Module):
    """Maps x to (q ⊙ (h ∗ (k ⊙ v))) W_out, (B, S, C) → (B, S, C), h_c[lag] = exp(−|lag| / span_c).

    Parameters: `qkv` and `output` are linear layers. `log_span` (C,) starts at the logarithms of 1
    to `length` positions. A causal filter has lags ≥ 0 only.
    """

    def __init__(self, width: int, length: int, causal: bool, init_std: float) -> None:
        super().__init__()
        self.causal = causal
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.log_span = nn.Parameter(torch.linspace(1, length, width).log())
        initialize(self, init_std)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, S, C) to (B, S, C) for any S; the filters h are (C, S, S)."""
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        position = torch.arange(x.shape[1], device=x.device)
        distance = (position[:, None] - position).abs()
        h = torch.exp(-distance / self.log_span.exp()[:, None, None])
        h = h.tril() if self.causal else h
        return self.output(q * torch.einsum("cts,bsc->btc", h, k * v))


class HyenaLite(SequenceArchitecture):
    """Hyena of order 2 (Poli et al. 2023) with one exponential filter per channel."""

    name = "hyena-lite"

    def mixer(self, width: int, length: int, causal: bool, config: SequenceConfig) -> nn.Module:
        """Return one layer, (B, S, width) → (B, S, width)."""
        return HyenaLiteMixer(width, length, causal, config.init_std)


@hookimpl
def iclbench_architectures() -> list[Entry]:
    """Provide hyena-lite."""
    return [Entry("hyena-lite", "gated convolution, exponentially decaying filters", HyenaLite)]
