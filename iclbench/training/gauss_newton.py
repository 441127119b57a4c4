"""Gauss–Newton steps with Levenberg–Marquardt damping, for models of some thousand parameters."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from ..api.config import Config, parse_config
from .objective import Objective
from .optimizer import BatchOptimizer
from .replicas import Replicas

#: Dampings that each step tries, as multiples of the last that served.
FACTORS = (0.25, 1.0, 4.0, 16.0)
#: Damping, as a multiple of the first, at which steps are too small to help: it starts again.
LARGEST = 1e8


class GaussNewton(BatchOptimizer):
    """δ = −(G + μI)⁻¹g for each replica, in float64.

    G (P, P) is the generalized Gauss–Newton matrix JᵀHJ, J the predictions' Jacobian and H the
    loss's Hessian in them (its negative eigenvalues taken as 0), and g the gradient, both means
    over a part of the batch; of four dampings μ the one is taken whose step leaves the least loss
    on the held-out rest, and none where that does not fall. Needs memory for a few P × P
    matrices, and batches of several times P / outputs prompts.
    """

    class Arguments(Config):
        """Where the damping starts, and how much of a batch judges a step."""

        damping: float = Field(1e-2, gt=0, description="μ at the first step")
        holdout: float = Field(0.25, gt=0, lt=1, description="share of the batch that judges")

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        self.arguments: Any = parse_config(self.Arguments, arguments, "optimizer gauss-newton")
        self.replicas = replicas
        self.damping = torch.full((replicas.count,), self.arguments.damping, dtype=torch.float64)

    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """See `BatchOptimizer.step`."""
        row, own = self.replicas.flat[replica], objective.of(replica, self.arguments.holdout)
        matrix, slope = own.curvature(row)
        least, best = float(own.held_out(row)), None
        for factor in FACTORS:
            damping = float(self.damping[replica]) * factor
            factored, failed = torch.linalg.cholesky_ex(_damped(matrix, damping))
            if int(failed):
                continue
            delta = torch.cholesky_solve(slope[:, None], factored)[:, 0].to(row)
            moved = row - rate * delta
            loss = float(own.held_out(moved))
            if loss < least:
                least, best = loss, (moved, damping)
        if best is None:
            grown = float(self.damping[replica]) * FACTORS[-1]
            first = self.arguments.damping
            self.damping[replica] = grown if grown <= LARGEST * first else first
            return
        row.copy_(best[0])
        self.damping[replica] = best[1]

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The dampings."""
        return {"damping": self.damping}, {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Copy the dampings."""
        self.damping.copy_(tensors["damping"])


def _damped(matrix: Tensor, damping: float) -> Tensor:
    return matrix + damping * torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
