"""Iterative solvers of least squares, each with its number of iterations."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from iclbench import Config

from .solver import LinearSolver


class GradientDescentConfig(Config):
    """Steps and step size."""

    steps: int = Field(400, ge=0, description="number of gradient steps")
    step_size: float | Literal["optimal"] = Field(
        "optimal", description="η, or 2/(λmin + λmax) of each prompt's Hessian"
    )
    normalize: Literal["mean", "sum"] = Field(
        "mean", description="the gradient's 1/N, or none (elsa, eqs. 35–36)"
    )


class GradientDescent(LinearSolver):
    """w ← w − η (1/N) Xᵀ(Xw − y) from w = 0 (least_squares, eq. 45)."""

    name = "gradient-descent"
    Config = GradientDescentConfig

    def weights(self, x: Tensor, y: Tensor, config: GradientDescentConfig) -> Tensor:
        """w (B, D, K) from x (B, k, D), y (B, k, K)."""
        scale = 1.0 / x.shape[1] if config.normalize == "mean" else 1.0
        eta = _optimal_step(x, scale) if config.step_size == "optimal" else config.step_size
        w = x.new_zeros(x.shape[0], x.shape[2], y.shape[2])
        for _ in range(config.steps):
            w = w - eta * (scale * (x.mT @ (x @ w - y)))
        return w


def _optimal_step(x: Tensor, scale: float) -> Tensor:
    """2/(λmin + λmax) of scale·XᵀX on the row space of X, (B, 1, 1)."""
    # Started at 0, the iterate never leaves the row space: the zero eigenvalues don't count.
    gram = x @ x.mT if x.shape[1] < x.shape[2] else x.mT @ x
    eigenvalues: Tensor = torch.linalg.eigvalsh(scale * gram)
    return (2.0 / (eigenvalues[:, 0] + eigenvalues[:, -1]))[:, None, None]


class ConjugateGradientConfig(Config):
    """The number of steps."""

    steps: int = Field(10, ge=0, description="number of steps; dim suffice in exact arithmetic")


class ConjugateGradient(LinearSolver):
    """Conjugate gradients on the normal equations, without forming XᵀX (CGLS), from w = 0."""

    name = "conjugate-gradient"
    Config = ConjugateGradientConfig

    def weights(self, x: Tensor, y: Tensor, config: ConjugateGradientConfig) -> Tensor:
        """w (B, D, K) from x (B, k, D), y (B, k, K)."""
        w = x.new_zeros(x.shape[0], x.shape[2], y.shape[2])
        # A gradient below the first is rounding alone, and one below the second no longer changes
        # w; steps along either would end in overflow.
        eps = torch.finfo(x.dtype).eps
        noise = eps**2 * x.square().sum(dim=(1, 2), keepdim=True)
        residual = y
        gradient = direction = x.mT @ residual
        size = _squared(gradient)
        nothing = eps**4 * size
        for _ in range(config.steps):
            active = (size > noise * _squared(residual)) & (size > nothing)
            image = x @ direction
            step = torch.where(active, size / _squared(image), 0)
            w = w + step * direction
            residual = residual - step * image
            gradient = x.mT @ residual
            size, before = _squared(gradient), size
            direction = gradient + torch.where(active, size / before, 0) * direction
        return w


def _squared(v: Tensor) -> Tensor:
    """‖v‖² of each column, (B, 1, K)."""
    return v.square().sum(dim=1, keepdim=True)


class NewtonConfig(Config):
    """The number of iterations."""

    steps: int = Field(20, ge=0, description="number of Newton–Schulz iterations")


class Newton(LinearSolver):
    """A ← 2A − A(XᵀX)A towards (XᵀX)⁺, then w = A Xᵀy (least_squares, B.2, corrected).

    From A = XᵀX / λmax², λmax the largest eigenvalue of XᵀX, which converges for every X.
    """

    name = "newton"
    Config = NewtonConfig

    def weights(self, x: Tensor, y: Tensor, config: NewtonConfig) -> Tensor:
        """w (B, D, K) from x (B, k, D), y (B, k, K)."""
        gram = x.mT @ x
        largest = torch.linalg.eigvalsh(gram)[:, -1, None, None]
        inverse: Tensor = gram / largest.square()
        for _ in range(config.steps):
            inverse = 2.0 * inverse - inverse @ gram @ inverse
        return inverse @ (x.mT @ y)
