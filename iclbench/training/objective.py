"""A batch's loss as a function of one replica's parameters, through the paper's module."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from ..api.errors import UsageError
from ..api.prompts import Batch
from ..nn.predictions import SeveralPredictions
from .gradients.program import Loss, prompts_of, replicas_of
from .replicas import Replicas


class Objective:
    """The mean loss of one step's batch, each field (R, B, …); parameters are rows (P,).

    For optimizers that need more than a gradient. It calls the module as it was built, since the
    faster forms of training can't be differentiated twice.
    """

    def __init__(self, replicas: Replicas, batch: Batch, loss: Loss, slices: int = 1) -> None:
        self.replicas, self.batch, self.loss, self.slices = replicas, batch, loss, slices

    def prediction(self, replica: int, row: Tensor, prompt: Any) -> Tensor:
        """Return the prediction (B, P, W); raises UsageError if the model trains on several."""
        prediction: Tensor | SeveralPredictions = self._predict(replica, row, prompt)
        if isinstance(prediction, SeveralPredictions):
            raise UsageError(
                "this optimizer needs one prediction per prompt; the model has several"
            )
        return prediction

    def mean_loss(self, replica: int, row: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss () of one replica's prompts, NaN or infinite where it diverges."""
        prediction = self._predict(replica, row, batch.prompt)
        return self.loss(prediction, batch.target).mean()

    def gradient(self, replica: int, row: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss () and gradient (P,) on the whole batch, summed over slices of it."""
        size = self.batch.target.shape[1]
        ends = [size * i // self.slices for i in range(self.slices + 1)]
        total, gradient = torch.zeros_like(row[0]), torch.zeros_like(row)
        for start, stop in itertools.pairwise(ends):
            leaf = row.detach().requires_grad_()
            part = replicas_of(prompts_of(self.batch, start, stop), replica)
            loss = self.mean_loss(replica, leaf, part)
            # Slices may differ by a prompt, so each mean counts by its share.
            share = (stop - start) / size
            total += share * loss.detach()
            gradient.add_(torch.autograd.grad(loss, leaf)[0], alpha=share)
        return total, gradient

    def _predict(self, replica: int, row: Tensor, prompt: Any) -> Any:
        """The model's prediction; the step's own gradient is what updates buffers, once."""
        tensors = self.replicas.tensors(replica, row)
        tensors |= {name: tensors[name].clone() for name in self.replicas.buffers}
        return self.replicas.call(tensors, prompt)
