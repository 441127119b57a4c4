"""Per-channel convolution over the full length, by direct sum and by FFT.

The direct sum is a product with each channel's Toeplitz matrix. It keeps zeros exact (an FFT
spreads rounding error over all positions, which ruins exact constructions) and is as fast for
short sequences; the FFT is faster for long ones. `python -m benchmarks.convolution` prints both
times and errors.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Longest sequence that `auto` convolves directly.
DIRECT_UP_TO = 128


def convolve(
    u: Tensor,
    h: Tensor,
    causal: bool,
    method: str = "auto",
    positions: slice = slice(None),
) -> Tensor:
    """Convolve u (B, S, C) with the taps h (S, C), channel by channel → (B, P, C) at `positions`.

    Causal: y[t] = Σ_{s ≤ t} h[t−s] u[s]. Circular otherwise: y[t] = Σ_s h[(t−s) mod S] u[s].
    `method` is `direct`, `fft`, or `auto` for the better one at this length. If u lies in memory
    channel by channel, as `by_channel` makes it, it is not copied and the answer lies so too.
    """
    if is_direct(method, u.shape[1]):
        return _direct(u, h, causal, positions)
    return _fft(u, h, causal)[:, positions]


def is_direct(method: str, length: int) -> bool:
    """Whether that many positions are convolved by products."""
    return method == "direct" or (method == "auto" and length <= DIRECT_UP_TO)


def by_channel(u: Tensor, weight: Tensor) -> Tensor:
    """u @ weight, (B, S, C) and (C, C) → (B, S, C), which lies in memory channel by channel."""
    batch, length, channels = u.shape
    product: Tensor = weight.mT @ u.reshape(-1, channels).mT
    return product.view(weight.shape[-1], batch, length).permute(1, 2, 0)


def _direct(u: Tensor, h: Tensor, causal: bool, wanted: slice) -> Tensor:
    length = u.shape[1]
    positions = torch.arange(length, device=u.device)
    lag = positions[wanted, None] - positions[None, :]
    seen = lag >= 0 if causal else torch.ones_like(lag, dtype=torch.bool)
    lag = lag % length
    if u.stride(1) == 1:  # channel by channel, and so are the matrices
        toeplitz = h.mT[:, lag] * seen
        return (u.permute(2, 0, 1) @ toeplitz.mT).permute(1, 2, 0)
    return torch.einsum("tsc,bsc->btc", h[lag] * seen.unsqueeze(-1), u)


def _fft(u: Tensor, h: Tensor, causal: bool) -> Tensor:
    length = u.shape[1]
    # Twice the length keeps what a circular convolution would wrap around out of sight.
    n = 2 * length if causal else length
    spectrum = torch.fft.rfft(u, n, dim=1) * torch.fft.rfft(h, n, dim=0)
    convolved: Tensor = torch.fft.irfft(spectrum, n, dim=1)
    return convolved[:, :length]
