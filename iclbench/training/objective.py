"""A batch's loss as a function of one replica's parameters, through the paper's module."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from ..api.prompts import Batch
from .gradients.program import Loss, prompts_of, replicas_of
from .replicas import Replicas


class Objective:
    """The mean loss of one step's batch, each field (R, B, …); parameters are rows (P,).

    For optimizers that need more than a gradient. It calls the module as it was built, since the
    faster forms of training can't be differentiated twice.
    """

    def __init__(self, replicas: Replicas, batch: Batch, loss: Loss, slices: int = 1) -> None:
        self.replicas, self.batch, self.loss, self.slices = replicas, batch, loss, slices

    def batch_of(self, replica: int) -> Batch:
        """Return one replica's batch, each field (B, …)."""
        return replicas_of(self.batch, replica)

    def prediction(self, replica: int, row: Tensor, prompt: Any) -> Tensor:
        """Return the prediction (B, P, W), or whatever the model predicts."""
        return self.replicas.predict(replica, row, prompt)

    def mean_loss(self, replica: int, row: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss () of one replica's prompts, NaN or infinite where it diverges."""
        return self.loss(self.prediction(replica, row, batch.prompt), batch.target).mean()

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
