"""Replicas one by one, and batches in slices, computed by several threads."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ...api.capabilities import TrainingContext
from ...api.prompts import Batch
from ..replicas import Replicas
from ..threads import Map
from .binding import Bound
from .program import Loss, gradients_of, prompts_of, replicas_of

#: A replica, and one of its batch's slices: index, first prompt, last prompt + 1.
Part = tuple[int, int, int, int]


class Threaded:
    """Each replica by the form of the module for one; slices keep intermediate results in caches.

    `map_parts` computes the parts: the built-in `map` in turn, `map_at_once` by threads. Sums are
    taken in the order of the slices, so the result does not depend on which thread is first.
    """

    name = "threaded"

    def __init__(
        self, replicas: Replicas, loss: Loss, context: TrainingContext, *, slices: int = 1,
        map_parts: Map = map,
    ) -> None:  # fmt: skip
        self.replicas, self.loss, self.slices, self.map_parts = replicas, loss, slices, map_parts
        self.context = replace(context, replicas="alone", batch_size=context.batch_size // slices)
        # Threads run at once, so each slice of each replica needs a module of its own.
        self._modules: dict[tuple[int, int], Bound] = {}

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `GradientProgram`."""
        parts, size = self.parts(batch), batch.target.shape[1]

        def gradient(part: Part) -> tuple[Tensor, Tensor]:
            loss, leaves = self.loss_of(part, batch)
            return loss.detach(), gradients_of(loss, leaves)[0]

        if len(parts) == 1:
            loss, row = gradient(parts[0])
            return loss.unsqueeze(0), row.unsqueeze(0)
        losses = torch.zeros_like(self.replicas.flat[:, 0])
        gradients = torch.zeros_like(self.replicas.flat)
        for part, (loss, row) in zip(parts, self.map_parts(gradient, parts), strict=True):
            replica, _, start, stop = part
            # Slices may differ by a prompt, so each mean counts by its share.
            share = (stop - start) / size
            losses[replica] += share * loss
            gradients[replica].add_(row, alpha=share)
        return losses, gradients

    def parts(self, batch: Batch) -> list[Part]:
        """Divide a batch, and make the parts' modules, which threads must not do at once."""
        size = batch.target.shape[1]
        slices = min(self.slices, size)
        ends = [size * i // slices for i in range(slices + 1)]
        for replica in range(self.replicas.count):
            for index in range(slices):
                if (replica, index) not in self._modules:
                    self._modules[replica, index] = Bound(self.replicas, replica, self.context)
        return [
            (replica, index, ends[index], ends[index + 1])
            for replica in range(self.replicas.count)
            for index in range(slices)
        ]

    def loss_of(self, part: Part, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """Return one part's loss (), and the leaves that it depends on."""
        replica, index, start, stop = part
        if self.slices > 1:
            batch = prompts_of(batch, start, stop)
        prompt, target, _ = replicas_of(batch, replica)
        module = self._modules[replica, index]
        return self.loss(module(prompt), target).mean(), module.leaves
