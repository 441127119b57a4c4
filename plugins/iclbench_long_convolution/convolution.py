"""Causal convolutions per channel: by FFT, by direct sum, and at the newest positions only."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

#: Longest sequence that `auto` convolves by the direct sum, which is as fast and more accurate.
DIRECT_UP_TO = 128


def convolve(u: Tensor, taps: Tensor, method: str = "auto") -> Tensor:
    """Return y[t] = Σ_{s ≤ t} taps[t−s] u[s] of u (B, S, C) and taps (S, C), as (B, S, C).

    `method` is `direct`, `fft`, or `auto`, which chooses by the length. Dtypes below float32 are
    convolved in float32, also under autocast; y has the dtype of u.
    """
    length = u.shape[1]
    if method == "direct" or (method == "auto" and length <= DIRECT_UP_TO):
        return convolve_newest(u, taps, length)
    dtype = _dtype_of(u, taps)
    with torch.autocast(u.device.type, enabled=False):
        # Padding to twice the length keeps the circular convolution from wrapping around.
        spectrum = torch.fft.rfft(u.to(dtype), 2 * length, dim=1)
        spectrum = spectrum * torch.fft.rfft(taps.to(dtype), 2 * length, dim=0)
        convolved: Tensor = torch.fft.irfft(spectrum, 2 * length, dim=1)
    return convolved[:, :length].to(u.dtype)


def convolve_newest(u: Tensor, taps: Tensor, count: int) -> Tensor:
    """Return the last `count` positions of `convolve` by the direct sum, (B, count, C)."""
    length, dtype = u.shape[1], _dtype_of(u, taps)
    positions = torch.arange(length, device=u.device)
    lag = positions[length - count :, None] - positions
    # Negative lags wrap around in the indexing, and are masked.
    toeplitz = taps.to(dtype)[lag] * (lag >= 0).unsqueeze(-1)
    with torch.autocast(u.device.type, enabled=False):
        return torch.einsum("tsc,bsc->btc", toeplitz, u.to(dtype)).to(u.dtype)


def _dtype_of(u: Tensor, taps: Tensor) -> torch.dtype:
    """Return the dtype in which u and taps are convolved."""
    return torch.promote_types(torch.promote_types(u.dtype, taps.dtype), torch.float32)


def convolve_short(x: Tensor, taps: Tensor) -> Tensor:
    """Return y[t] = Σ_k taps[k] x[t−k] for few taps (K, C), where x (B, S + K − 1, C) has a past.

    The first K − 1 positions of x are the past; the result is (B, S, C).
    """
    count = len(taps)
    length = x.shape[1] - count + 1
    parts = [taps[k] * x[:, count - 1 - k : count - 1 - k + length] for k in range(count)]
    return torch.stack(parts).sum(dim=0)


def with_past(x: Tensor, count: int, past: Tensor | None) -> Tensor:
    """Put `count` positions of the past before x (B, S, C): zeros where there is none."""
    return pad(x, (0, 0, count, 0)) if past is None else torch.cat([past, x], dim=1)
