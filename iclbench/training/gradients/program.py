"""The one seam for gradients: what the training loop asks for, and what every program answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from ...api.prompts import Batch, map_tensors
from ..replicas import Replicas

#: The losses (B,) of B prompts, from their predictions and targets.
Loss = Callable[[Tensor, Tensor], Tensor]


class GradientProgram(Protocol):
    """Computes the gradients of all replicas on one batch; it keeps no state of the training.

    A program is made for one `Replicas`, whose parameters it reads again at every call. The batch
    has fields (R, B, …). The results, losses (R,) and gradients (R, P), are valid until the next
    call: copy them to keep them or to add to them.
    """

    name: str

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the mean losses (R,) of the batch and their gradients (R, P)."""
        ...


#: Makes a program for some replicas: the training's, or a copy on which it is tried.
MakeProgram = Callable[[Replicas], GradientProgram]


def replicas_of(batch: Batch, rows: int | slice) -> Batch:
    """Return the batch of one replica, (B, …) each field, or of several, (r, B, …)."""
    return Batch(map_tensors(lambda t: t[rows], batch.prompt), batch.target[rows])


def prompts_of(batch: Batch, start: int, stop: int) -> Batch:
    """Return some prompts of every replica, each field (R, stop - start, …)."""
    prompt = map_tensors(lambda t: t[:, start:stop], batch.prompt)
    return Batch(prompt, batch.target[:, start:stop])


def no_autocast(loss: Tensor) -> torch.autocast:
    """The context of a backward pass: each operator in the dtype of its forward pass.

    Autocast would lower those too that the model keeps out of it.
    """
    return torch.autocast(loss.device.type, enabled=False)


def gradients_of(losses: Tensor, leaves: list[Tensor]) -> Tensor:
    """Return the gradient (r, P) of r losses in their leaves, 0 where a loss ignores a leaf."""
    # Each loss depends on its own rows alone, so one backward pass through the sum is enough.
    total = losses.sum() if losses.ndim else losses
    with no_autocast(total):
        grads = torch.autograd.grad(total, leaves, materialize_grads=True)
    rows = [grad.reshape(losses.numel(), -1) for grad in grads]
    # A single gradient may be an expanded view, which can't be added to in place.
    return rows[0].contiguous() if len(rows) == 1 else torch.cat(rows, dim=1)
