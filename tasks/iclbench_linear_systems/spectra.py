"""Eigenvalues with a given condition number, and matrices that have them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Spectrum = Literal["log-uniform", "uniform", "clustered", "outlier"]

#: cuSOLVER diagonalizes matrices of up to this size together, …
BATCHED = 32
#: … and refuses a batch of some 32,000, which a chunk of several replicas may have.
AT_ONCE = 8192


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

    The eigenvectors come from `normal` (B, N, N), standard normal; their signs cancel in A.
    """
    together = normal.is_cuda and normal.shape[1] <= BATCHED
    basis = basis_by_eigh(normal) if together else basis_by_qr(normal)
    product = (basis * values.unsqueeze(1)) @ basis.mT
    # Products round differently above and below the diagonal; solvers assume exact symmetry.
    matrices: Tensor = 0.5 * (product + product.mT)
    return matrices


def basis_by_qr(normal: Tensor) -> Tensor:
    """Q (B, N, N) of the QR decomposition, which is Haar but for the signs of its columns."""
    basis: Tensor = torch.linalg.qr(normal).Q
    return basis


def basis_by_eigh(normal: Tensor) -> Tensor:
    """The eigenvectors (B, N, N) of `normal` + its transpose, which are Haar but for their signs.

    A GPU computes Q of small matrices one by one, but diagonalizes them together.
    """
    parts = torch.split(normal + normal.mT, AT_ONCE)
    return torch.cat([torch.linalg.eigh(part).eigenvectors for part in parts])
