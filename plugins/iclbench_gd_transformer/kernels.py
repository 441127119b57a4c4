"""Kernels of self-attention over covariates, and the expectation under the softmax."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Kernel = Literal["linear", "rbf", "exponential", "laplacian", "softmax"]


def attention(kernel: Kernel, queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
    """Weights (B, S, N) of keys (B, N, d) for queries (B, S, d).

    `softmax` normalizes exp(qᵀk) over the keys. The others are κ(q, k)/N: `linear` qᵀk, `rbf`
    exp(−‖q − k‖²), `exponential` exp(qᵀk), `laplacian` exp(−‖q − k‖₁). Scales are those of q and k.
    `mask` (S, N) says which keys a query sees; N is the number of keys that the first query sees.
    """
    if kernel == "rbf":
        scores = -_squared_distances(queries, keys)
    elif kernel == "laplacian":
        scores = -(queries.unsqueeze(2) - keys.unsqueeze(1)).abs().sum(dim=3)
    else:
        scores = queries @ keys.mT
    if kernel == "softmax":
        hidden = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        return hidden.softmax(dim=2)
    values = scores if kernel == "linear" else scores.exp()
    if mask is None:
        return values / keys.shape[1]
    return values * mask / mask[0].sum()


def expectation(f: Tensor, embedding: Tensor) -> Tensor:
    """E(w_e)|f = Σ_c w_c softmax_c(w_cᵀf), (…, d'), of f (…, d') and W_e (C, d') (eq. 6).

    Cross-attention with the query f and the embeddings as keys and values.
    """
    return (f @ embedding.mT).softmax(dim=-1) @ embedding


def _squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """‖a − b‖² of every pair, from exact differences."""
    return (a.unsqueeze(2) - b.unsqueeze(1)).square().sum(dim=3)
