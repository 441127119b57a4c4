"""The loss of a step's batch as a function of one replica's parameters, and its curvature."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.func import grad, jacrev, vmap

from ..api.prompts import Batch, map_tensors
from .replicas import Loss, Replicas, call

#: Elements of the Jacobian that are held at once.
AT_ONCE = 2**25


class Objective:
    """The mean loss of one step's batch, every field (R, B, …), as a function of parameters."""

    def __init__(self, replicas: Replicas, batch: Batch, loss: Loss) -> None:
        self.replicas, self.batch, self.loss = replicas, batch, loss

    def gradient(self, replica: int) -> tuple[Tensor, Tensor]:
        """One replica's loss () and gradient (P,) on the whole batch, where it stands."""
        return self.replicas.gradient_of(replica, self.batch, self.loss)

    def of(self, replica: int, holdout: float) -> ReplicaObjective:
        """One replica's, its batch divided for fitting and judging."""
        return ReplicaObjective(self, replica, holdout)


class ReplicaObjective:
    """One replica's loss on the two parts of its batch; parameters are rows (P,)."""

    def __init__(self, whole: Objective, replica: int, holdout: float) -> None:
        self.replicas, self.loss = whole.replicas, whole.loss
        self.fixed = {name: values[replica] for name, values in self.replicas.fixed.items()}
        prompt = map_tensors(lambda t: t[replica], whole.batch.prompt)
        target = whole.batch.target[replica]
        kept = max(1, min(len(target) - 1, round(len(target) * (1 - holdout))))
        self.fitting = Batch(map_tensors(lambda t: t[:kept], prompt), target[:kept])
        self.judging = Batch(map_tensors(lambda t: t[kept:], prompt), target[kept:])

    def predict(self, row: Tensor, prompt: Any) -> Tensor:
        """(B, P, W), or what the model's prediction is."""
        state = dict(zip(self.replicas.shapes, self.replicas.split(row), strict=True))
        called = self.replicas.called(len(self.fitting.target))
        found: Tensor = call(called, {**state, **self.fixed}, prompt)
        return found

    def held_out(self, row: Tensor) -> Tensor:
        """The mean loss on the part that judges; NaN or infinite where it diverges."""
        with torch.no_grad():
            return self.loss(self.predict(row, self.judging.prompt), self.judging.target).mean()

    def curvature(self, row: Tensor) -> tuple[Tensor, Tensor]:
        """G (P, P) and g (P,), float64, on the part that fits."""
        prompt, target = self.fitting.prompt, self.fitting.target
        with torch.no_grad():
            outputs = self.predict(row, map_tensors(lambda t: t[:1], prompt)).numel()
        size = max(1, AT_ONCE // (outputs * len(row)))
        matrix = torch.zeros(len(row), len(row), dtype=torch.float64, device=row.device)
        slope = torch.zeros(len(row), dtype=torch.float64, device=row.device)
        for start in range(0, len(target), size):
            part = map_tensors(lambda t, s=start: t[s : s + size], prompt)
            rows, pull = self._rows(row, part, target[start : start + size])
            matrix.addmm_(rows.mT, rows)
            slope += pull
        return matrix / len(target), slope / len(target)

    def _rows(self, row: Tensor, prompt: Any, target: Tensor) -> tuple[Tensor, Tensor]:
        """H^½J of some prompts, (prompts · outputs, P), and the sum of their gradients, (P,)."""

        def single(row: Tensor, prompt: Any) -> Tensor:
            return self.predict(row, map_tensors(lambda t: t[None], prompt))[0]

        def loss(prediction: Tensor, target: Tensor) -> Tensor:
            return self.loss(prediction[None], target[None])[0]

        with torch.no_grad():
            predictions = self.predict(row, prompt)
        n, outputs = len(target), predictions[0].numel()
        jacobian = vmap(jacrev(single), in_dims=(None, 0))(row, prompt)
        jacobian = jacobian.detach().reshape(n, outputs, -1).double()
        slopes = vmap(grad(loss))(predictions, target).reshape(n, outputs).double()
        bends = vmap(jacrev(grad(loss)))(predictions, target).reshape(n, outputs, outputs).double()
        values, vectors = torch.linalg.eigh(bends)
        roots = values.clamp(min=0).sqrt()[..., None] * vectors.mT
        rows = (roots @ jacobian).reshape(n * outputs, -1)
        return rows, (slopes[:, None] @ jacobian).sum(dim=0)[0]
