"""L-BFGS on each step's batch, for models of few parameters and losses without noise."""

from __future__ import annotations

from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from ..config import Config, parse_config
from .objective import Objective
from .optimizer import Optimizer
from .replicas import Replicas


class LBFGS(Optimizer):
    """torch.optim.LBFGS with strong Wolfe line searches, for each replica by itself.

    A step takes up to `iterations` on its batch, from no history: gradients of another batch would
    say nothing of this one's curvature. It ends early where the line search finds no descent, as
    at the floor of the dtype. Batches have to be large, since a batch is learned as it is.
    """

    whole_batch = True

    class Arguments(Config):
        """How much is done with one batch."""

        iterations: int = Field(100, ge=1, description="iterations a step")
        history: int = Field(50, ge=1, description="pairs of steps and gradients that are kept")

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        self.arguments: Any = parse_config(self.Arguments, arguments, "optimizer lbfgs")
        self.replicas = replicas

    def update(
        self,
        grad: Tensor,
        rate: Tensor,
        alive: Tensor,
        step: int | Tensor,
        objective: Objective | None = None,
    ) -> None:
        """See `Optimizer.update`; the gradients are this one's own."""
        assert objective is not None
        for r, (size, living) in enumerate(zip(rate.tolist(), alive.tolist(), strict=True)):
            if living:
                self._step(r, size, objective)

    def _step(self, r: int, rate: float, objective: Objective) -> None:
        row = self.replicas.flat[r]
        start, leaf = row.clone(), torch.nn.Parameter(row.clone())
        a = self.arguments
        optimizer = torch.optim.LBFGS(
            [leaf],
            lr=rate,
            max_iter=a.iterations,
            history_size=a.history,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            row.copy_(leaf.detach())
            value, leaf.grad = objective.gradient(r)
            return value

        optimizer.step(closure)  # type: ignore[no-untyped-call]
        row.copy_(leaf.detach())
        if not torch.isfinite(objective.gradient(r)[0]):
            row.copy_(start)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Nothing is kept between steps."""
        return {}, {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Nothing is kept between steps."""
