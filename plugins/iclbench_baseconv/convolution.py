"""Per-channel convolution over the full length, by direct sum or by FFT.

The direct sum multiplies by each channel's Toeplitz matrix. It keeps zeros exact, whereas an FFT
spreads rounding error over all positions, which ruins exact constructions. It is as fast for short
sequences; the FFT is faster for long ones. `python -m benchmarks.convolution` prints times and
errors of both.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: Longest sequence that `auto` convolves by the direct sum.
DIRECT_UP_TO = 128


def convolve(u: Tensor, h: Tensor, causal: bool, method: str = "auto") -> Tensor:
    """Convolve u (B, S, C) with the taps h (S, C), channel by channel → (B, S, C).

    Causal: y[t] = Σ_{s ≤ t} h[t−s] u[s]. Circular otherwise: y[t] = Σ_s h[(t−s) mod S] u[s].
    `method` is `direct`, `fft`, or `auto`, which chooses by the length. Dtypes below float32 are
    convolved in float32, also under autocast; y has the dtype of u.
    """
    if not is_direct(method, u.shape[1]):
        return convolve_fft(u, h, causal)
    lag, visible = lags(u.shape[1], causal, u.device)
    dtype = dtype_of(u, h)
    with torch.autocast(u.device.type, enabled=False):
        # h[lag] is every channel's Toeplitz matrix, (S, S, C).
        toeplitz = h.to(dtype)[lag] * visible.unsqueeze(-1)
        return torch.einsum("tsc,bsc->btc", toeplitz, u.to(dtype)).to(u.dtype)


def dtype_of(u: Tensor, h: Tensor) -> torch.dtype:
    """The dtype in which u and h are convolved."""
    return torch.promote_types(torch.promote_types(u.dtype, h.dtype), torch.float32)


def is_direct(method: str, length: int) -> bool:
    """Whether `method` uses the direct sum for a sequence of this length."""
    return method == "direct" or (method == "auto" and length <= DIRECT_UP_TO)


def lags(length: int, causal: bool, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return (t − s) mod S and whether output t sees input s, both (S, S)."""
    positions = torch.arange(length, device=device)
    lag = positions[:, None] - positions
    visible = lag >= 0 if causal else torch.ones_like(lag, dtype=torch.bool)
    # Causal: lags below 0 also wrap around here, but are not visible.
    return lag % length, visible


def convolve_fft(u: Tensor, h: Tensor, causal: bool) -> Tensor:
    """Convolve u (B, S, C) with the taps h (S, C) by FFT → (B, S, C), in the dtype of u."""
    length, dtype = u.shape[1], dtype_of(u, h)
    # Padding to twice the length keeps the circular convolution from wrapping around.
    n = 2 * length if causal else length
    spectrum = torch.fft.rfft(u.to(dtype), n, dim=1) * torch.fft.rfft(h.to(dtype), n, dim=0)
    convolved: Tensor = torch.fft.irfft(spectrum, n, dim=1)
    return convolved[:, :length].to(u.dtype)
