"""Several replicas as one program by a module that takes a leading replica dimension."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ...api.capabilities import TrainingContext
from ...api.prompts import Batch
from ..replicas import Replicas
from .binding import Bound
from .program import Loss, replicas_of
from .vmapped import Grouped


class Leading(Grouped):
    """The form of the module that takes parameters (r, …) and prompts (r, B, …) at once.

    Making it raises NoFormError where the module has no such form.
    """

    name = "leading"

    def __init__(
        self, replicas: Replicas, loss: Loss, context: TrainingContext, group_size: int
    ) -> None:
        super().__init__(replicas, loss, group_size)
        # The loss takes predictions of all replicas at once, which must be tensors.
        context = replace(context, replicas="leading", factored_logits=False)
        self.modules = [Bound(replicas, rows, context) for rows in self.groups]

    def losses(self, rows: slice, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        """See `Grouped.losses`."""
        prompt, target, _ = replicas_of(batch, rows)
        module = self.modules[self.groups.index(rows)]
        # A task's loss is computed prompt by prompt, so replicas may share its batch dimension.
        losses = self.loss(module(prompt).flatten(0, 1), target.flatten(0, 1))
        return losses.view(len(target), -1).mean(dim=1), module.leaves
