"""Several replicas as one program by `torch.vmap`, and what programs in groups share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.overrides import TorchFunctionMode

from ...api.capabilities import TrainingContext
from ...api.prompts import Batch
from ...nn.training_form import names_in
from ..replicas import Replicas
from .binding import form_of
from .program import Loss, gradients_of, replicas_of


class Grouped(ABC):
    """A program that takes `group_size` replicas at a time, group after group."""

    name: str

    def __init__(self, replicas: Replicas, loss: Loss, group_size: int) -> None:
        self.replicas, self.loss = replicas, loss
        starts = range(0, replicas.count, group_size)
        self.groups = [slice(s, min(s + group_size, replicas.count)) for s in starts]

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `GradientProgram`."""
        results = []
        for rows in self.groups:
            losses, leaves = self.losses(rows, batch)
            results.append((losses.detach(), gradients_of(losses, leaves)))
        if len(results) == 1:
            return results[0]
        return torch.cat([v for v, _ in results]), torch.cat([g for _, g in results])

    @abstractmethod
    def losses(self, rows: slice, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """Return one group's losses (r,), and the leaves (r, …) that they depend on."""


class Vmapped(Grouped):
    """The form of the module for `torch.vmap`, on all replicas of a group at once."""

    name = "vmapped"

    def __init__(
        self, replicas: Replicas, loss: Loss, context: TrainingContext, group_size: int
    ) -> None:
        super().__init__(replicas, loss, group_size)
        module, form = form_of(replicas, replace(context, replicas="vmapped"))
        assert form is not None
        self.form, self.names = form, names_in(form, module)

    def losses(self, rows: slice, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """See `Grouped.losses`."""
        prompt, target, _ = replicas_of(batch, rows)
        # One leaf for all parameters: its gradient is the matrix (r, P), nothing to concatenate.
        flat = self.replicas.flat[rows].detach().requires_grad_()
        # The slices share memory with the replicas', so buffers that a module updates are kept.
        others = self.replicas.others(rows)
        return self.vmapped_losses(flat, others, prompt, target), [flat]

    def vmapped_losses(
        self, flat: Tensor, others: dict[str, Tensor], prompt: Any, target: Tensor
    ) -> Tensor:
        """Return the losses (r,) at parameters (r, P)."""

        def loss_of_one(tensors: dict[str, Tensor], prompt: Any, target: Tensor) -> Tensor:
            named = {name: tensors[paper] for paper, name in self.names.items()}
            return self.loss(functional_call(self.form, named, (prompt,)), target).mean()

        with LinearAsProduct():
            tensors = {**self.replicas.split(flat), **others}
            losses: Tensor = vmap(loss_of_one)(tensors, prompt, target)
        return losses


class LinearAsProduct(TorchFunctionMode):
    """Computes linear maps as a product and a sum; vmap's own rule also multiplies both by 1."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is nn.functional.linear and not kwargs:
            x, weight, *bias = args
            product = x @ weight.mT
            # Autocast's product is in its dtype, as the result of linear is: the bias must not
            # make it wider.
            return product if not bias or bias[0] is None else product + bias[0].to(product)
        return func(*args, **(kwargs or {}))
