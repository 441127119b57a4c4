"""Regression problems y = xᵀw + noise: their distribution, for training and for evaluation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Streams, TaskConfig, philox


class LeastSquaresConfig(TaskConfig):
    """The distribution of the problems (least_squares, D.3, and two departures from it)."""

    dim: int = Field(5, ge=1, description="D, the inputs' dimension")
    examples: int = Field(20, ge=1, description="N, examples in the context")
    noise: float = Field(0.0, ge=0, description="standard deviation of the noise on y")
    condition_number: float | None = Field(
        None, ge=1, description="of every prompt's design matrix; null leaves it Gaussian"
    )

    @model_validator(mode="after")
    def _design_can_have_the_condition_number(self) -> LeastSquaresConfig:
        if self.condition_number is not None and self.examples < self.dim:
            raise ValueError("condition_number needs at least as many examples as dimensions")
        return self


class Problems(NamedTuple):
    """x (B, N+1, D), the query last; w (B, D, 1); y (B, N, 1); clean (B, N+1, 1) = x w.

    ridge (B,) is the penalty of a ridge problem, start (B, D, 1) where a descent starts.
    """

    x: Tensor
    w: Tensor
    y: Tensor
    clean: Tensor
    ridge: Tensor | None = None
    start: Tensor | None = None

    def rows(self, dtype: torch.dtype) -> Tensor:
        """(xᵢ, yᵢ) and last (x_query, 0), (B, N+1, D+1)."""
        values = torch.nn.functional.pad(self.y, (0, 0, 0, 1))
        return torch.cat([self.x, values], dim=2).to(dtype)


def sample_problems(config: LeastSquaresConfig, streams: Streams) -> Problems:
    """A problem for training for each of the streams' rows."""
    x = streams.normal(config.examples + 1, config.dim)
    w = streams.normal(config.dim, 1)
    if config.condition_number is not None:
        x = _conditioned(x, streams.normal(config.dim, config.dim), config.condition_number)
    clean = x @ w
    y = clean[:, :-1]
    if config.noise:
        y = y + config.noise * streams.normal(config.examples, 1)
    return Problems(x, w, y, clean)


def draw_problems(config: LeastSquaresConfig, n: int, seed: int) -> dict[str, np.ndarray]:
    """The raw float64 draws of n evaluation problems, one stream for each quantity."""
    shapes = {
        "x": (n, config.examples + 1, config.dim),
        "w": (n, config.dim, 1),
        "noise": (n, config.examples, 1),
        "rotation": (n, config.dim, config.dim),
    }
    return {
        name: philox("least squares evaluation", name, seed).standard_normal(shape)
        for name, shape in shapes.items()
    }


def evaluation_problems(
    config: LeastSquaresConfig, n: int, seed: int, dtype: torch.dtype
) -> Problems:
    """n evaluation problems: x and w rounded once to `dtype`, then all in float64."""
    draws = {name: torch.from_numpy(v) for name, v in draw_problems(config, n, seed).items()}
    x = draws["x"]
    if config.condition_number is not None:
        x = _conditioned(x, draws["rotation"], config.condition_number)
    x, w = x.to(dtype).double(), draws["w"].to(dtype).double()
    clean = x @ w
    return Problems(x, w, clean[:, :-1] + config.noise * draws["noise"], clean)


def _conditioned(x: Tensor, rotation: Tensor, condition_number: float) -> Tensor:
    """x (B, N+1, D) with a design x[:, :N] of that condition number; the query stays Gaussian.

    The singular values are geometric from κ^½ to κ^−½, scaled to the Gaussian's mean square √N;
    `rotation` (B, D, D) is Gaussian and gives the right singular vectors.
    """
    design, query = x[:, :-1], x[:, -1:]
    examples, dim = design.shape[1:]
    half = 0.5 * torch.linspace(1, -1, dim, dtype=torch.float64)
    values = condition_number**half if dim > 1 else torch.ones(1, dtype=torch.float64)
    values = values * (dim * examples / values.square().sum()).sqrt()
    left = torch.linalg.qr(design)[0]
    right = torch.linalg.qr(rotation)[0]
    design = (left * values.to(x)) @ right.transpose(1, 2)
    return torch.cat([design, query], dim=1)


def minimum_norm(x: Tensor, y: Tensor) -> Tensor:
    """The least-squares solution w (B, D, 1) of least norm for x (B, k, D), y (B, k, 1)."""
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], x.shape[2], 1)
    # gels is LAPACK's QR, and LQ for the underdetermined prefixes. torch's gelsy, which would bear
    # rank deficiency, gives other last bits from call to call and beside other prompts.
    solution: Tensor = torch.linalg.lstsq(x.cpu(), y.cpu(), driver="gels").solution
    return solution.to(x.device)
