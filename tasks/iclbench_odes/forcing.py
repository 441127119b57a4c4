"""Smooth random functions: a Gaussian process, and its mean given some values."""

from __future__ import annotations

from functools import cache

import torch
from flint import arb, arb_mat, ctx
from torch import Tensor

#: Terms are left out once their part of the variance is below it.
NEGLIGIBLE = 1e-34
#: Bits of the conditional mean's arithmetic; the covariance's condition number is near 1e18.
BITS = 400


def terms(length: float) -> int:
    """The number of terms of the process for |x| ≤ 1."""
    share, k = torch.exp(torch.tensor(-1.0 / length, dtype=torch.float64)).item(), 0
    # The shares are Poisson probabilities, which fall beyond their mean of 1/ℓ.
    while share > NEGLIGIBLE or k < 1.0 / length:
        k += 1
        share *= 1.0 / (length * k)
    return k


def basis(x: Tensor, length: float) -> Tensor:
    """φ_k(x) = exp(−x²/2ℓ)(x/√ℓ)ᵏ/√k!, (points, terms), float64.

    Σ φ_k(x) φ_k(y) = exp(−(x − y)²/2ℓ), by the series of exp(xy/ℓ). So Σ z_k φ_k with z ~ N(0, I)
    is the process, at any points, and no covariance matrix has to be factored.
    """
    columns = [torch.exp(-x.square() / (2.0 * length))]
    for k in range(1, terms(length)):
        columns.append(columns[-1] * x / (length * k) ** 0.5)
    return torch.stack(columns, dim=1)


@cache
def conditional_mean(
    known: tuple[float, ...], wanted: tuple[float, ...], length: float, noise: float
) -> Tensor:
    """The matrix (wanted, known) of E[c(wanted) | c(known) + noise], float64, rounded once.

    K(wanted, known)(K(known, known) + noise·I)⁻¹ with the variance `noise`, in ball arithmetic:
    the covariance is singular in float64.
    """
    bits, ctx.prec = ctx.prec, BITS
    try:

        def covariance(a: float, b: float) -> arb:
            return (-((arb(a) - arb(b)) ** 2) / (2 * arb(length))).exp()

        inner = arb_mat([[covariance(a, b) for b in known] for a in known])
        for i in range(len(known)):
            inner[i, i] += arb(noise)
        outer = arb_mat([[covariance(a, b) for b in wanted] for a in known])
        weights = inner.solve(outer)
        rows = [[float(weights[i, j].mid()) for i in range(len(known))] for j in range(len(wanted))]
    finally:
        ctx.prec = bits
    return torch.tensor(rows, dtype=torch.float64)
