"""Stochastic gradient descent, step for step as in torch.optim."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from ...api.config import Config
from ..replicas import Replicas
from .base import Stacked, Update


class SGD(Stacked):
    """torch.optim.SGD."""

    class Arguments(Config):
        """As in torch.optim."""

        momentum: float = Field(0.0, ge=0)
        nesterov: bool = False
        weight_decay: float = Field(0.0, ge=0)

        @model_validator(mode="after")
        def _nesterov_has_momentum(self) -> SGD.Arguments:
            if self.nesterov and not self.momentum:
                raise ValueError("nesterov needs momentum")
            return self

    moments = ("velocity",)

    def __init__(self, replicas: Replicas, arguments: dict[str, Any]) -> None:
        super().__init__(replicas, arguments)
        # Without momentum there is nothing to keep between steps.
        if not self.arguments.momentum:
            self.buffers.clear()

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        a, grad = self.arguments, by.grad
        if a.weight_decay:
            grad = grad + a.weight_decay * self.flat
        if a.momentum:
            velocity = self.buffers["velocity"].mul_(a.momentum).add_(grad)
            # torch's form: the learning rate is not part of the velocity.
            grad = grad + a.momentum * velocity if a.nesterov else velocity
        self.subtract(grad * by.rate.unsqueeze(1), by.alive)
