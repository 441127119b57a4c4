"""The two Bayes predictors: of weights from a pool (dMMSE), and of fresh ones (ridge)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

#: Values of all candidates at all inputs that are held at once; in float64 they take 32 MB.
MOST_VALUES = 2**22


def discrete_mmse(x: Tensor, y: Tensor, pool: Tensor, noise: float) -> Tensor:
    """E[w·x_{k+1} | k examples] for w uniform on a pool (M, D), for k = 0…N: (B, N+1, 1).

    x is (B, N+1, D) and y (B, N, 1) = w·x + noise · N(0, 1). The weight of w_m is
    softmax_m(−Σ_{i ≤ k} (yᵢ − w_m·xᵢ)²/2σ²).
    """
    rows = max(1, MOST_VALUES // (len(pool) * x.shape[1]))
    parts = zip(torch.split(x, rows), torch.split(y, rows), strict=True)
    return torch.cat([_posterior_means(a, b, pool, noise) for a, b in parts])


def _posterior_means(x: Tensor, y: Tensor, pool: Tensor, noise: float) -> Tensor:
    values = x @ pool.mT
    squares = (y - values[:, :-1]).square().cumsum(dim=1)
    # Without examples all candidates have the same weight.
    weights = (-pad(squares, (0, 0, 1, 0)) / (2.0 * noise**2)).softmax(dim=2)
    return (weights * values).sum(dim=2, keepdim=True)


def ridge_means(x: Tensor, y: Tensor, noise: float) -> Tensor:
    """The same for w ~ N(0, I): ridge regression with λ = σ² on every prefix, (B, N+1, 1)."""
    dim = x.shape[2]
    # XᵀX and Xᵀy of every prefix, from k = 0 on.
    grams = pad((x[:, :-1, :, None] * x[:, :-1, None]).cumsum(dim=1), (0, 0, 0, 0, 1, 0))
    sides = pad((x[:, :-1] * y).cumsum(dim=1), (0, 0, 1, 0))
    penalty = noise**2 * torch.eye(dim, dtype=x.dtype, device=x.device)
    weights = torch.linalg.solve(grams + penalty, sides.unsqueeze(3))
    means: Tensor = (x.unsqueeze(2) @ weights).squeeze(3)
    return means
