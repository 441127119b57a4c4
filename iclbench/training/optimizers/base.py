"""What every optimizer of stacked parameters does, and the bases of its kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from ...api.config import Config, parse_config
from ...api.errors import UsageError
from ..objective import Objective
from ..replicas import Replicas


class Update(NamedTuple):
    """What an update uses: `grad` (R, P), learning rates (R,), and who is `alive`, bool (R,).

    `step` counts from 1, a number or a float64 tensor () on the device; `objective` is the batch's
    loss, for an optimizer that needs more than its gradient.
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
        """Take one step; a replica that is not alive keeps its parameters."""

    @abstractmethod
    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return tensors and JSON values from which `load` continues to the same bits."""

    @abstractmethod
    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Take up a state."""


class Stacked(Optimizer):
    """An optimizer that updates all replicas at once; its moments have the shape (R, P)."""

    moments: ClassVar[tuple[str, ...]] = ()
    #: Whether an update is a few elementwise operators: cheap beside a gradient, and nothing in it
    #: depends on the host.
    elementwise: ClassVar[bool] = True
    Arguments: ClassVar[type[Config]]

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        name = type(self).__name__.lower()
        self.arguments: Any = parse_config(self.Arguments, arguments, f"optimizer {name}")
        self.flat = replicas.flat
        self.buffers = {moment: torch.zeros_like(self.flat) for moment in self.moments}

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the moments."""
        return dict(self.buffers), {}

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Copy the moments."""
        for name, buffer in self.buffers.items():
            buffer.copy_(tensors[name])

    def subtract(self, delta: Tensor, alive: Tensor) -> None:
        """Subtract `delta` (R, P) from the parameters of living replicas."""
        # Not by a product with `alive`: a diverged replica's NaN would survive.
        torch.where(alive.unsqueeze(1), self.flat - delta, self.flat, out=self.flat)


class BatchOptimizer(Optimizer):
    """An optimizer that evaluates the loss of a step's whole batch, replica after replica."""

    #: What recipes call it.
    name: ClassVar[str]

    def update(self, by: Update) -> None:
        """See `Optimizer.update`; the gradient is not used."""
        assert by.objective is not None
        rates, living = by.rate.tolist(), by.alive.tolist()
        for r, (rate, lives) in enumerate(zip(rates, living, strict=True)):
            if lives:
                self.step(r, rate, by.objective)

    def require_suited(self, objective: Objective, *, draws: bool) -> None:
        """Raise UsageError for a model that it can't train, such as one that draws random numbers.

        `objective` is of a batch to try.
        """
        if draws:
            raise UsageError(f"optimizer {self.name} needs a model that draws no random numbers")

    @abstractmethod
    def step(self, replica: int, rate: float, objective: Objective) -> None:
        """Take one step of one replica, in place."""
