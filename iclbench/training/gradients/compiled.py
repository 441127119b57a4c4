"""The forward and backward pass by `torch.compile`."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from ...api.capabilities import TrainingContext
from ...api.prompts import Batch, map_tensors
from ...nn.training_form import names_in
from ..replicas import Replicas
from .binding import form_of
from .program import Loss, replicas_of
from .vmapped import Vmapped


class Compiled(Vmapped):
    """One compiled program for a group of vmapped replicas, or for one replica alone.

    It is compiled at its first call. Its operators are divided among torch's threads.
    """

    name = "compiled"

    def __init__(
        self, replicas: Replicas, loss: Loss, context: TrainingContext, group_size: int
    ) -> None:
        context = replace(context, compiled=True)
        super().__init__(replicas, loss, context, group_size)
        self.function: Any = self.vmapped_losses
        if group_size == 1:  # without vmap the program has fewer operators
            module, form = form_of(replicas, replace(context, replicas="alone"))
            assert form is not None
            self.form, self.names = form, names_in(form, module)
            self.function = self._loss_of_one
        self.compiled: Any = torch.compile(self.function)

    def on(self, replicas: Replicas) -> Compiled:
        """Return the program for other replicas of the same shapes, with the same compiled code."""
        # The compiled function takes parameters as arguments, so it serves other replicas too.
        other = copy.copy(self)
        other.replicas = replicas
        return other

    def losses(self, rows: slice, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """See `Grouped.losses`."""
        prompt, target, _ = replicas_of(batch, rows)
        # Compiled code is for one memory layout. A step's batch is a slice of a chunk, and one that
        # a CUDA graph reads, or a trial's, is not.
        prompt, target = map_tensors(in_order, prompt), in_order(target)
        flat = self.replicas.flat[rows].detach().requires_grad_()
        return self.compiled(flat, self.replicas.others(rows), prompt, target), [flat]

    def _loss_of_one(
        self, flat: Tensor, others: dict[str, Tensor], prompt: Any, target: Tensor
    ) -> Tensor:
        """Return the loss (1,) at parameters (1, P)."""
        tensors = {**self.replicas.split(flat), **others}
        named = {name: tensors[paper][0] for paper, name in self.names.items()}
        one = map_tensors(lambda t: t[0], prompt)
        return self.loss(functional_call(self.form, named, (one,)), target[0]).mean().unsqueeze(0)


def in_order(tensor: Tensor) -> Tensor:
    """The tensor with the strides that its shape has in memory; a copy only where that moves."""
    # `contiguous` would leave a dimension of size 1 whatever stride it has.
    return tensor.reshape(-1).view(tensor.shape)
