"""The reference: one `loss.backward()` per replica, through the paper's module."""

from __future__ import annotations

import torch
from torch import Tensor

from ...api.prompts import Batch
from ..random_streams import random_stream
from ..replicas import Replicas
from .program import Loss, no_autocast, replicas_of


class Plain:
    """Replica after replica, by the module as it was built; correct for every module.

    Every other program is compared with this one. Models that draw random numbers in their forward
    pass are trained by it, each replica with its own stream.
    """

    name = "plain"

    def __init__(self, replicas: Replicas, loss: Loss) -> None:
        self.replicas, self.loss = replicas, loss

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `GradientProgram`."""
        losses, gradients = [], []
        for r in range(self.replicas.count):
            prompt, target, _ = replicas_of(batch, r)
            leaves = self.replicas.views(r)
            tensors = {**leaves, **self.replicas.others(r)}
            with random_stream(self.replicas, r):
                prediction = self.replicas.call(tensors, prompt)
                loss = self.loss(prediction, target).mean()
                with no_autocast(loss):
                    loss.backward()  # type: ignore[no-untyped-call]
            self.replicas.keep(r, tensors)  # after the backward pass, which needs what it replaces
            losses.append(loss.detach())
            # A parameter that the loss ignores has no gradient.
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in leaves.values()]
            gradients.append(torch.cat([grad.reshape(-1) for grad in grads]))
        return torch.stack(losses), torch.stack(gradients)
