"""Optimizer: what updates the stacked parameters of all replicas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from .objective import Objective


class Optimizer(ABC):
    """Updates the (R, P) parameters of all replicas in place."""

    @abstractmethod
    def update(
        self,
        grad: Tensor,
        rate: Tensor,
        alive: Tensor,
        step: int | Tensor,
        objective: Objective | None = None,
    ) -> None:
        """One step: `grad` (R, P), `rate` (R,) learning rates, `alive` (R,) bool, `step` from 1,
        a number or a float64 tensor () on the device.

        A replica that is not alive keeps its parameters. `objective` is the step's loss, for what
        needs more than its gradient.
        """

    @abstractmethod
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON values from which `load` continues to the same bits."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Take up a state."""


class BatchOptimizer(Optimizer):
    """Takes gradients of its own from a step's whole batch, replica after replica."""

    def update(
        self,
        grad: Tensor,
        rate: Tensor,
        alive: Tensor,
        step: int | Tensor,
        objective: Objective | None = None,
    ) -> None:
        """See `Optimizer.update`; `grad` is left aside."""
        assert objective is not None
        for r, (size, living) in enumerate(zip(rate.tolist(), alive.tolist(), strict=True)):
            if living:
                self.step(r, size, objective)

    @abstractmethod
    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """One step of one replica, in place."""
