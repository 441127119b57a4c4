"""The training curve: about a hundred points of each replica's mean loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Points of a whole training's curve.
POINTS = 100


class Curve:
    """For each of `steps`, every replica's mean loss since the point before, in `losses`.

    `latest` is the mean since the last point, also between two points.
    """

    def __init__(self, replicas: int, total_steps: int) -> None:
        self.every = max(1, total_steps // POINTS)
        self.steps: list[int] = []
        self.losses: list[list[float]] = []
        self._sums, self._count = [0.0] * replicas, 0
        self.latest: list[float] = self._sums

    def add(self, losses: Tensor, step: int, *, last: bool) -> bool:
        """Take up losses (steps, R) that end at `step`; return whether this closes a point."""
        chunk = losses.sum(dim=0, dtype=torch.float64).tolist()
        self._sums = [a + b for a, b in zip(self._sums, chunk, strict=True)]
        self._count += len(losses)
        self.latest = [value / self._count for value in self._sums]
        if self._count < self.every and not last:
            return False
        self.steps.append(step)
        self.losses.append(self.latest)
        self._sums, self._count = [0.0] * len(self._sums), 0
        return True

    def state(self) -> dict[str, Any]:
        """Return JSON values from which `load_state` continues."""
        window = [self._sums, self._count]
        return {"steps": self.steps, "losses": self.losses, "window": window}

    def load_state(self, values: dict[str, Any]) -> None:
        """Take up a state."""
        self.steps, self.losses = values["steps"], values["losses"]
        self._sums, self._count = values["window"]
