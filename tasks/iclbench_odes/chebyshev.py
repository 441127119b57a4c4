"""Polynomials of even degree N on [−1, 1] by their values at the Chebyshev points cos(πi/N)."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

#: N; even, so that 0 is a point. As in the source.
DEGREE = 40


@cache
def points(degree: int = DEGREE) -> Tensor:
    """cos(πi/N), i = 0…N, for an even N, (N + 1,), float64; the middle one is exactly 0."""
    # A sine of symmetric angles: symmetric to the last bit, and 0 in the middle.
    angles = np.pi * np.arange(degree, -degree - 1, -2) / (2 * degree)
    return torch.from_numpy(np.sin(angles))


@cache
def integration(degree: int = DEGREE) -> Tensor:
    """The matrix (N + 1, N + 1) that maps values of p to those of ∫₀ᵗ p(s) ds, for an even N.

    By Chebyshev coefficients: ∫T_k = ½(T_{k+1}/(k + 1) − T_{k−1}/(k − 1)).
    """
    k = np.arange(degree + 1)
    angles = np.pi * np.arange(degree + 1) / degree
    values = np.cos(np.outer(angles, k))  # T_k at the points, (N + 1, N + 1)
    halves = np.where((k == 0) | (k == degree), 0.5, 1.0)
    coefficients = 2.0 / degree * halves[:, None] * values.T * halves[None, :]
    antiderivatives = np.empty_like(values)
    antiderivatives[:, 0] = np.cos(angles)
    antiderivatives[:, 1] = 0.25 * np.cos(2 * angles)
    for n in range(2, degree + 1):
        above, below = np.cos((n + 1) * angles), np.cos((n - 1) * angles)
        antiderivatives[:, n] = 0.5 * (above / (n + 1) - below / (n - 1))
    matrix = antiderivatives @ coefficients
    # From 0: the middle row is the constant of integration.
    return torch.from_numpy(matrix - matrix[degree // 2])


def interpolation(t: Tensor, degree: int = DEGREE) -> Tensor:
    """Weights (B, N + 1) of the values at the points, which give that at t (B,).

    The barycentric formula (Berrut and Trefethen 2004).
    """
    difference = t.unsqueeze(1) - points(degree).to(t)
    weights = torch.ones_like(difference)
    weights[:, 1::2] = -1.0
    weights[:, [0, -1]] *= 0.5
    hit = difference == 0
    weights = weights / torch.where(hit, 1.0, difference)
    # At a point the formula is 0/0, and the value is that of the point.
    weights = torch.where(hit.any(dim=1, keepdim=True), hit.to(t), weights)
    return weights / weights.sum(dim=1, keepdim=True)
