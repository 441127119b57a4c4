"""Regression problems y = xᵀw + noise: their distribution."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Draws, PrefixConfig, Random, added_later


class LeastSquaresConfig(PrefixConfig):
    """The distribution of the problems (Liu et al., D.3), with two additions."""

    dim: int = Field(5, ge=1, description="D, dimension of the inputs")
    examples: int = Field(20, ge=1, description="N, number of examples in the context")
    noise: float = Field(0.0, ge=0, description="standard deviation of the noise on y")
    # κ above 1e12 would leave the weights few digits even in float64.
    condition_number: float | None = Field(
        None,
        ge=1,
        le=1e12,
        description="condition number of each prompt's design matrix; null: Gaussian matrix; "
        "float32 needs one below 1e6, since rounding moves the smallest singular value",
    )
    normalized: bool = added_later(
        False,
        description="scale the noisy values and w* by √(D/(D + σ²)), so that values are as large "
        "as without noise (Garg et al. 2022)",
    )

    @model_validator(mode="after")
    def _arguments_fit_each_other(self) -> LeastSquaresConfig:
        if self.condition_number is not None and self.examples < self.dim:
            raise ValueError("condition_number needs at least as many examples as dimensions")
        if self.condition_number is not None and self.dim == 1:
            raise ValueError("condition_number needs more than one dimension")
        if self.normalized and not self.noise:
            raise ValueError("normalized needs noise")
        return self

    @property
    def scale(self) -> float:
        """The factor on all values, and so on w*."""
        return math.sqrt(self.dim / (self.dim + self.noise**2)) if self.normalized else 1.0


class Problems(NamedTuple):
    """x (B, N+1, D), the query last; w (B, D, 1); y (B, N, 1); clean (B, N+1, 1) = x w."""

    x: Tensor
    w: Tensor
    y: Tensor
    clean: Tensor

    def rows(self) -> Tensor:
        """(xᵢ, yᵢ) and last (x_query, 0), (B, N+1, D+1)."""
        # A value of 0 marks the query's token (D.2.2).
        values = torch.nn.functional.pad(self.y, (0, 0, 0, 1))
        return torch.cat([self.x, values], dim=2)


def draw_problems(config: LeastSquaresConfig, random: Random) -> Draws:
    """x and w, with the condition number, and standard normal noise if there is any."""
    x = random.normal("x", config.examples + 1, config.dim)
    w = random.normal("w", config.dim, 1)
    if config.condition_number is not None:
        rotation = random.normal("rotation", config.dim, config.dim)
        x = _conditioned(x, rotation, config.condition_number)
    # Drawn last and only if used: without noise, training draws no numbers for it.
    if not config.noise:
        return {"x": x, "w": w}
    return {"x": x, "w": w, "noise": random.normal("noise", config.examples, 1)}


def problems_from(config: LeastSquaresConfig, draws: Draws) -> Problems:
    """The problems of such draws."""
    x, w = draws["x"], draws["w"]
    if config.normalized:
        w = config.scale * w
    clean = x @ w
    # The query's value is in no prompt.
    y = clean[:, :-1]
    if config.noise:
        y = y + config.scale * config.noise * draws["noise"]
    return Problems(x, w, y, clean)


def _conditioned(x: Tensor, rotation: Tensor, condition_number: float) -> Tensor:
    """x (B, N+1, D) whose design x[:, :N] has that condition number; the query stays Gaussian.

    The singular values are geometric from κ^½ to κ^−½, with the mean square N of a Gaussian's;
    `rotation` (B, D, D) is Gaussian and gives the right singular vectors.
    """
    design, query = x[:, :-1], x[:, -1:]
    examples, dim = design.shape[1:]
    # In float64 for every dtype of x: the values are rounded once, where they meet `left`.
    half = 0.5 * torch.linspace(1, -1, dim, dtype=torch.float64)
    values = condition_number**half
    # A Gaussian N × D design has Σσ² = ND in expectation; conditioning keeps that scale.
    values = values * (dim * examples / values.square().sum()).sqrt()
    # Q of a Gaussian matrix is uniformly random only after its columns take the signs of R's
    # diagonal: those that LAPACK gives would favor a sign of the first examples. One of the two
    # factors is enough.
    # On a CPU, wherever x is: cuSOLVER factorizes small matrices one by one.
    left, upper = (factor.to(x) for factor in torch.linalg.qr(design.cpu()))
    left = left * upper.diagonal(dim1=1, dim2=2).sign().unsqueeze(1)
    right = torch.linalg.qr(rotation.cpu())[0].to(x)
    design = (left * values.to(x)) @ right.transpose(1, 2)
    return torch.cat([design, query], dim=1)
