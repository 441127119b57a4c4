"""Kernels of self-attention over covariates, and the expectation under the softmax."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement
from typing import Any, Literal

import torch
from torch import Tensor, nn

Kernel = Literal["linear", "polynomial", "rbf", "exponential", "laplacian", "softmax"]

#: Default degree of the polynomial kernel.
DEGREE = 2


def require_degree(kernel: Kernel, degree: int) -> None:
    """Raise ValueError for the degree of a kernel that is no polynomial."""
    if degree != DEGREE and kernel != "polynomial":
        raise ValueError(f"degree is for kernel=polynomial, not {kernel}")


#: Largest number of features to compute explicitly.
MAX_FEATURES = 4096


def attention(
    kernel: Kernel,
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None = None,
    degree: int = DEGREE,
) -> Tensor:
    """Weights (B, S, N) of keys (B, N, d) for queries (B, S, d).

    `softmax` normalizes exp(qᵀk) over the keys. The others are κ(q, k)/N: `linear` qᵀk,
    `polynomial` (1 + qᵀk)^degree, `rbf` exp(−‖q − k‖²), `exponential` exp(qᵀk), `laplacian`
    exp(−‖q − k‖₁). Callers scale q and k. `mask` (S, N) says which keys a query sees; the divisor
    N is then the number of keys that the first query sees, the same for all queries.
    """
    if kernel == "rbf":
        scores = -_distances(queries, keys, p=2.0).square()
    elif kernel == "laplacian":
        scores = -_distances(queries, keys, p=1.0)
    else:
        scores = queries @ keys.mT
    if kernel == "softmax":
        visible = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        return visible.softmax(dim=2)
    if mask is not None:
        # An unseen key must not overflow: inf times 0 is NaN.
        scores = scores.masked_fill(~mask, 0.0)
    if kernel == "polynomial":
        values = (1.0 + scores) ** degree
    else:
        values = scores if kernel == "linear" else scores.exp()
    if mask is None:
        return values / keys.shape[1]
    # One divisor for all queries, as in eq. 3, whether or not they see themselves too.
    return values * mask / mask[0].sum()


def expectation(f: Tensor, embedding: Tensor) -> Tensor:
    """E(w_e)|f = Σ_c w_c softmax_c(w_cᵀf), (…, d'), from f (…, d') and W_e (C, d') (eq. 6).

    This is cross-attention with query f and the embeddings as keys and values.
    """
    return (f @ embedding.mT).softmax(dim=-1) @ embedding


def features(kernel: Kernel, x: Tensor, degree: int = DEGREE) -> Tensor | None:
    """ψ(x) (…, m) of x (…, d) with ψ(x)ᵀψ(x') = κ(x, x'); None if m is infinite or too large.

    For the polynomial kernel, these are the monomials of (1, x) of that degree, times the square
    roots of their multinomial coefficients; m = C(d + degree, degree).
    """
    if kernel == "linear":
        return x
    if kernel != "polynomial" or math.comb(x.shape[-1] + degree, degree) > MAX_FEATURES:
        return None
    inputs = torch.cat([torch.ones_like(x[..., :1]), x], dim=-1)
    monomials = []
    for indices in combinations_with_replacement(range(inputs.shape[-1]), degree):
        repeats = math.prod(math.factorial(indices.count(i)) for i in set(indices))
        factor = math.sqrt(math.factorial(degree) / repeats)
        monomials.append(factor * inputs[..., list(indices)].prod(dim=-1))
    return torch.stack(monomials, dim=-1)


def state_size(kernel: Kernel, degree: int, dim: int, width: int) -> int | None:
    """The size of Σ v ψ(x)ᵀ, which is all that a finite kernel needs of its context; else None.

    Covariates x have `dim` numbers and values v have `width`.
    """
    psi = features(kernel, torch.zeros(1, dim), degree)
    return None if psi is None else width * psi.shape[-1]


def median_scale(kernel: Kernel, x: Tensor) -> Tensor:
    """The factor on inputs x (B, N, d) that makes the median distance of two of them 1, (B, 1, 1).

    It is the median heuristic, in the norm of the kernel; 1 where it would be infinite.
    """
    first, second = torch.triu_indices(x.shape[1], x.shape[1], 1, device=x.device)
    if not len(first):
        return torch.ones_like(x[:, :1, :1])
    pairs = _distances(x, x, p=1.0 if kernel == "laplacian" else 2.0)[:, first, second]
    median = pairs.median(dim=1).values[:, None, None]
    return torch.where(median > 0, 1.0 / median, 1.0)


def _distances(a: Tensor, b: Tensor, p: float) -> Tensor:
    """‖a − b‖_p of all pairs, (B, S, N)."""
    # Distances from products would lose digits for near points; cdist subtracts pair by pair
    # without holding all differences.
    return torch.cdist(a, b, p, compute_mode="donot_use_mm_for_euclid_dist")


def covariates(prompt: Any, normalize: bool = False) -> Tensor:
    """x of the context, then of the queries, (B, N + Q, d); `normalize` gives them norm 1."""
    x = torch.cat([prompt.x, prompt.query], dim=1)
    return nn.functional.normalize(x, dim=2) if normalize else x
