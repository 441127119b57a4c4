"""Eigenvalues with a given condition number, and matrices that have them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Spectrum = Literal["log-uniform", "uniform", "clustered", "outlier"]


def eigenvalues(uniform: Tensor, condition_number: float, spectrum: Spectrum) -> Tensor:
    """Eigenvalues (B, N) from draws uniform on [0, 1), (B, N).

    The largest is 1 and, for N > 1, the smallest 1/κ, so that every matrix has condition number κ.
    Those between are log-uniform, uniform, within 5% of either extreme (clustered), or within 5%
    of the smallest (outlier).
    """
    low = 1.0 / condition_number
    if spectrum == "log-uniform":
        # κ^−u with u in [0, 1) is log-uniform in (1/κ, 1].
        values = low**uniform
    elif spectrum == "uniform":
        values = low + (1.0 - low) * uniform
    else:
        # The first bit of a draw selects the cluster, the rest the position within it.
        high = (uniform >= 0.5) if spectrum == "clustered" else torch.zeros_like(uniform).bool()
        offset = 0.05 * torch.frac(2.0 * uniform)
        values = torch.where(high, 1.0 - offset, low * (1.0 + offset)).clamp(low, 1.0)
    values = values.clone()
    # Both extremes are set, so that κ is exact. For N = 1 the eigenvalue is 1: it is set last.
    values[:, -1] = low
    values[:, 0] = 1.0
    return values


def symmetric(normal: Tensor, values: Tensor) -> Tensor:
    """A (B, N, N) with these eigenvalues (B, N) and Haar-random eigenvectors.

    The eigenvectors are Q of the QR decomposition of `normal` (B, N, N), standard normal. Q is Haar
    only after its columns take the signs of R's diagonal, but signs cancel in A.
    """
    basis = torch.linalg.qr(normal).Q
    product = (basis * values.unsqueeze(1)) @ basis.mT
    # Products round differently above and below the diagonal; solvers assume exact symmetry.
    matrices: Tensor = 0.5 * (product + product.mT)
    return matrices
