"""Optimizer: what updates the stacked parameters of all replicas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from torch import Tensor

from .objective import Objective


class Update(NamedTuple):
    """What an update is made of: `grad` (R, P), learning rates (R,), and who is `alive`, bool (R,).

    `step` counts from 1, a number or a float64 tensor () on the device; `objective` is the step's
    loss, for what needs more than its gradient.
    """

    grad: Tensor
    rate: Tensor
    alive: Tensor
    step: int | Tensor
    objective: Objective | None = None


class Optimizer(ABC):
    """Updates the (R, P) parameters of all replicas in place."""

    @abstractmethod
    def update(self, by: Update) -> None:
        """One step; a replica that is not alive keeps its parameters."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and JSON values from which `load` continues to the same bits."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Take up a state."""


class BatchOptimizer(Optimizer):
    """Takes gradients of its own from a step's whole batch, replica after replica."""

    def update(self, by: Update) -> None:
        """See `Optimizer.update`; the gradient is left aside."""
        assert by.objective is not None
        rates, living = by.rate.tolist(), by.alive.tolist()
        for r, (rate, lives) in enumerate(zip(rates, living, strict=True)):
            if lives:
                self.step(r, rate, by.objective)

    @abstractmethod
    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """One step of one replica, in place."""
