"""Causal attention over learned positions, the same for every text."""

from __future__ import annotations

import torch
from torch import Tensor

from .kernels import Kernel


def position_attention(
    kernel: Kernel, queries: Tensor, keys: Tensor, seen: Tensor, counts: Tensor
) -> Tensor:
    """Weights (M, S, N) of keys (M, N, d) for queries (M, S, d) of M heads.

    `seen` (S, N) says which keys a query sees; `counts` (S,) divides the kernels other than
    softmax. The kernels are those of `kernels.attention`, without `polynomial`. A query that sees
    no key has weights 0.
    """
    if kernel == "rbf":
        scores = -_squared_distances(queries, keys)
    elif kernel == "laplacian":
        scores = -torch.cdist(queries, keys, p=1.0)
    else:
        scores = queries @ keys.mT
    if kernel == "softmax":
        # Not −inf: a query without keys would be NaN. Its weights become 0 by the product.
        visible = torch.where(seen, scores, torch.finfo(scores.dtype).min)
        return visible.softmax(dim=2) * seen
    if kernel != "linear":
        # An unseen key must not overflow: inf times 0 is NaN.
        scores = torch.where(seen, scores, 0.0).exp()
    return scores * seen / counts.clamp(min=1).to(scores).unsqueeze(1)


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖² of all pairs, at least 0, computed in float32 from a lower dtype."""
    dtype = torch.promote_types(a.dtype, torch.float32)
    # A difference of close numbers: autocast's dtype would leave no digits.
    with torch.autocast(a.device.type, enabled=False):
        x, y = a.to(dtype), b.to(dtype)
        # From products, so that no (S, N, d) of differences is held.
        lengths = x.square().sum(dim=2).unsqueeze(2) + y.square().sum(dim=2).unsqueeze(1)
        return (lengths - 2 * x @ y.mT).clamp(min=0).to(a.dtype)


def initial_scale(kernel: Kernel, width: int) -> float:
    """The factor on random positions (T, width) for which scores are about 1."""
    exponent = {"rbf": -0.5, "laplacian": -1.0}.get(kernel, -0.25)
    return float(width**exponent)


def sinusoids(count: int, width: int) -> Tensor:
    """Sines and cosines of the position (Vaswani et al. 2017, 3.5), (count, width)."""
    half = -(-width // 2)
    rates = 10_000.0 ** (-torch.arange(half) / half)
    angles = torch.arange(count).unsqueeze(1) * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width].clone()
