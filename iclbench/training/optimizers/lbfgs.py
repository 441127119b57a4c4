"""L-BFGS on each step's batch, for models of few parameters and losses without noise."""

from __future__ import annotations

import math
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from ...api.config import Config, parse_config
from ..objective import Objective
from ..replicas import Replicas
from .base import BatchOptimizer


class LBFGS(BatchOptimizer):
    """torch.optim.LBFGS with strong Wolfe line searches, one replica after another.

    A step takes up to `iterations` on its batch, with a quarter more evaluations, and divides the
    loss by its first value, so that the loss's unit doesn't matter. It starts without
    history, since gradients of another batch say nothing about this one's curvature. It ends early
    where the line search finds no descent, as at the floor of the dtype, and keeps the best
    parameters it has seen. Use large batches, because it fits each batch as given.
    """

    name = "lbfgs"

    class Arguments(Config):
        """How much is done with one batch."""

        iterations: int = Field(100, ge=1, description="number of iterations per step")
        history: int = Field(
            50, ge=1, description="number of pairs of steps and gradient differences that are kept"
        )

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        self.arguments: Any = parse_config(self.Arguments, arguments, "optimizer lbfgs")
        self.replicas = replicas

    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """See `BatchOptimizer.step`."""
        row = self.replicas.flat[replica]
        # A copy, since line searches move it to parameters that may be worse.
        leaf = torch.nn.Parameter(row.clone())
        a = self.arguments
        optimizer = torch.optim.LBFGS(
            [leaf],
            lr=rate,
            max_iter=a.iterations,
            history_size=a.history,
            # torch's default tolerances are absolute and would stop far above float64's floor.
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )
        best, least, scale = row.clone(), math.inf, None

        def closure() -> Tensor:
            nonlocal best, least, scale
            # The same batch at every evaluation, which a line search presupposes.
            value, gradient = objective.gradient(replica, leaf.detach())
            loss = float(value)
            if loss < least:
                best, least = leaf.detach().clone(), loss
            if scale is None:
                # torch ignores curvature where step times gradient difference is below 1e-10.
                scale = loss if 0 < loss < math.inf else 1.0
            leaf.grad = gradient / scale
            return value / scale

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        row.copy_(best)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Nothing is kept between steps."""
        return {}, {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Nothing is kept between steps."""
