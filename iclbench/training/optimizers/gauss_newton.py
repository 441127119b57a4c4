"""Gauss–Newton steps with Levenberg–Marquardt damping, for models of some thousand parameters."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.func import grad, jacrev, vmap

from ...api.config import Config, parse_config
from ...api.errors import UsageError, first_line, is_out_of_memory
from ...api.prompts import Batch, map_tensors
from ...devices import machine_memory
from ..gradients.program import prompts_of, replicas_of
from ..objective import Objective
from ..replicas import Replicas
from .base import BatchOptimizer
from .eigen import eigh

#: Dampings that each step tries, as multiples of the last one taken.
FACTORS = (0.25, 1.0, 4.0, 16.0)

#: Damping starts again above this multiple of the first, where steps are too small to help. It
#: never falls below the first divided by it, so that it can grow again within a few steps.
LARGEST = 1e8

#: Elements of the Jacobian that are held at once.
AT_ONCE = 2**25

#: P × P matrices of float64 that a step holds at once.
MATRICES = 3


class GaussNewton(BatchOptimizer):
    """δ = −(G + μI)⁻¹g for each replica, summed up and solved in float64.

    G (P, P) is the generalized Gauss–Newton matrix JᵀHJ, where J is the predictions' Jacobian and H
    the loss's Hessian in them with negative eigenvalues set to 0, and g is the gradient; both are
    means over a part of the batch. Of four dampings μ it takes the one whose step leaves the least
    loss on the held-out rest, and none where that does not fall. Needs memory for a few P × P
    matrices, and batches of several times P / outputs prompts.
    """

    name = "gauss-newton"

    class Arguments(Config):
        """Where the damping starts, and how much of a batch judges a step."""

        damping: float = Field(1e-2, gt=0, description="μ, the damping, at the first step")
        holdout: float = Field(
            0.25,
            gt=0,
            lt=1,
            description="share of the batch that is held out to choose the damping",
        )

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        """Raises UsageError for arguments, and for a model whose matrices need too much memory."""
        self.arguments: Any = parse_config(self.Arguments, arguments, "optimizer gauss-newton")
        parameters, memory = replicas.flat.shape[1], machine_memory()
        needed = MATRICES * 8 * parameters**2
        # A GPU that is full says so; a machine would kill the process.
        if replicas.flat.device.type == "cpu" and needed > memory:
            raise UsageError(
                f"optimizer gauss-newton needs {needed / 1e9:,.0f} GB for {parameters:,} × "
                f"{parameters:,} matrices; this machine has {memory / 1e9:,.0f} GB"
            )
        self.replicas = replicas
        self.damping = torch.full((replicas.count,), self.arguments.damping, dtype=torch.float64)

    def require_suited(self, objective: Objective, *, draws: bool) -> None:
        """See `BatchOptimizer.require_suited`."""
        super().require_suited(objective, draws=draws)
        prompts = prompts_of(replicas_of(objective.batch, slice(1)), 0, 1)
        try:
            _rows(objective, 0, self.replicas.flat[0], replicas_of(prompts, 0))
        except Exception as error:  # torch has an error for each operator that it can't transform
            if isinstance(error, UsageError) or is_out_of_memory(error):
                raise
            raise UsageError(
                "optimizer gauss-newton can't differentiate this model prompt by prompt "
                f"({first_line(error)}); use lbfgs or adam"
            ) from None

    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """See `BatchOptimizer.step`."""
        row = self.replicas.flat[replica]
        fitting, judging = divided(replicas_of(objective.batch, replica), self.arguments.holdout)

        def held_out(row: Tensor) -> float:
            with torch.no_grad():
                return float(objective.mean_loss(replica, row, judging))

        matrix, slope = curvature(objective, replica, row, fitting)
        least, best = held_out(row), None
        for factor in FACTORS:
            damping = float(self.damping[replica]) * factor
            delta = _solution(matrix, slope, damping)
            # Too little damping for a semidefinite matrix: a larger factor follows.
            if delta is None:
                continue
            moved = row - rate * delta.to(row)
            loss = held_out(moved)
            if loss < least:
                least, best = loss, (moved, damping)
        # No damping helped: try larger ones next time, but start again rather than stall.
        if best is None:
            grown = float(self.damping[replica]) * FACTORS[-1]
            first = self.arguments.damping
            self.damping[replica] = grown if grown <= LARGEST * first else first
            return
        row.copy_(best[0])
        self.damping[replica] = max(best[1], self.arguments.damping / LARGEST)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the dampings."""
        return {"damping": self.damping}, {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Copy the dampings."""
        self.damping.copy_(tensors["damping"])


def divided(batch: Batch, holdout: float) -> tuple[Batch, Batch]:
    """Divide a batch, each field (B, …), into the prompts to fit and those that judge."""
    prompt, target, _ = batch
    # At least one prompt on each side.
    kept = max(1, min(len(target) - 1, round(len(target) * (1 - holdout))))
    return (
        Batch(map_tensors(lambda t: t[:kept], prompt), target[:kept]),
        Batch(map_tensors(lambda t: t[kept:], prompt), target[kept:]),
    )


def curvature(
    objective: Objective, replica: int, row: Tensor, batch: Batch
) -> tuple[Tensor, Tensor]:
    """Return G (P, P) and g (P,), float64, on one replica's prompts, each field (B, …)."""
    prompt, target, _ = batch
    with torch.no_grad():
        first = objective.prediction(replica, row, map_tensors(lambda t: t[:1], prompt))
    # Prompts per part: a Jacobian has outputs · P elements per prompt.
    size = max(1, AT_ONCE // (first.numel() * len(row)))
    matrix = torch.zeros(len(row), len(row), dtype=torch.float64, device=row.device)
    slope = torch.zeros(len(row), dtype=torch.float64, device=row.device)
    for start in range(0, len(target), size):
        part = map_tensors(lambda t, s=start: t[s : s + size], prompt)
        rows, pull = _rows(objective, replica, row, Batch(part, target[start : start + size]))
        # JᵀHJ = (H^½J)ᵀ(H^½J), positive semidefinite by construction.
        matrix.addmm_(rows.mT, rows)
        slope += pull
    return matrix / len(target), slope / len(target)


def _rows(objective: Objective, replica: int, row: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """H^½J of some prompts, (prompts · outputs, P), and the sum of their gradients, (P,)."""
    prompt, target, _ = batch

    def prediction_of_one(row: Tensor, prompt: Any) -> Tensor:
        return objective.prediction(replica, row, map_tensors(lambda t: t[None], prompt))[0]

    def loss_of_one(prediction: Tensor, target: Tensor) -> Tensor:
        return objective.loss(prediction[None], target[None])[0]

    with torch.no_grad():
        predictions = objective.prediction(replica, row, prompt)
    n, outputs = len(target), predictions[0].numel()
    jacobian = vmap(jacrev(prediction_of_one), in_dims=(None, 0))(row, prompt)
    jacobian = jacobian.detach().reshape(n, outputs, -1).double()
    slopes = vmap(grad(loss_of_one))(predictions, target).reshape(n, outputs).double()
    hessians = vmap(jacrev(grad(loss_of_one)))(predictions, target)
    values, vectors = eigh(hessians.reshape(n, outputs, outputs).double())
    # H^½ by eigenvalues; negative ones would make G indefinite.
    roots = values.clamp(min=0).sqrt()[..., None] * vectors.mT
    rows = (roots @ jacobian).reshape(n * outputs, -1)
    return rows, (slopes[:, None] @ jacobian).sum(dim=0)[0]


def _solution(matrix: Tensor, slope: Tensor, damping: float) -> Tensor | None:
    """(G + μI)⁻¹g, or None where that matrix isn't positive definite in float64."""
    damped = matrix.clone()
    damped.diagonal().add_(damping)
    factored, failed = torch.linalg.cholesky_ex(damped)
    return None if int(failed) else torch.cholesky_solve(slope[:, None], factored)[:, 0]
