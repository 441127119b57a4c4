"""Adam and AdamW, step for step as in torch.optim."""

from __future__ import annotations

import itertools
from typing import Annotated, ClassVar

import torch
from pydantic import Field

from ...api.config import Config
from .base import Stacked, Update

Beta = Annotated[float, Field(ge=0, lt=1)]

#: Whether this build of torch has the fused operators, which are not part of its stable interface.
HAS_FUSED_ADAM = hasattr(torch, "_fused_adam_") and hasattr(torch, "_fused_adamw_")

#: Parameters per replica from which one fused operator per replica is faster than all replicas
#: operator by operator.
WORTH_FUSING = 4096


class Adam(Stacked):
    """torch.optim.Adam.

    On a CPU by torch's fused operator, which passes over memory once and is called for replicas of
    one learning rate, except where many small replicas have different rates.
    """

    class Arguments(Config):
        """As in torch.optim."""

        betas: tuple[Beta, Beta] = (0.9, 0.999)
        eps: float = Field(1e-8, ge=0)
        weight_decay: float = Field(0.0, ge=0)

    moments = ("mean", "square")
    decoupled: ClassVar[bool] = False

    def update(self, by: Update) -> None:
        """See `Optimizer.update`."""
        if HAS_FUSED_ADAM and self.flat.device.type == "cpu":
            rates = by.rate.tolist()
            if self.flat.shape[1] >= WORTH_FUSING or len(set(rates)) == 1:
                return self._update_fused(by, rates)
        return self._update_stacked(by)

    def _update_fused(self, by: Update, rates: list[float]) -> None:
        a, row = self.arguments, 0
        update = torch._fused_adamw_ if self.decoupled else torch._fused_adam_
        # The operator reads memory in order, whatever the strides are.
        step, grad = torch.tensor(float(by.step)), by.grad.contiguous()
        for (rate, lives), run in itertools.groupby(zip(rates, by.alive.tolist(), strict=True)):
            rows = slice(row, row + len(list(run)))
            row = rows.stop
            if lives:
                update(
                    [self.flat[rows]],
                    [grad[rows]],
                    [self.buffers["mean"][rows]],
                    [self.buffers["square"][rows]],
                    [],
                    [step],
                    lr=rate,
                    beta1=a.betas[0],
                    beta2=a.betas[1],
                    weight_decay=a.weight_decay,
                    eps=a.eps,
                    amsgrad=False,
                    maximize=False,
                )

    def _update_stacked(self, by: Update) -> None:
        a, grad, rate, step = self.arguments, by.grad, by.rate, by.step
        beta1, beta2 = a.betas
        if a.weight_decay and not self.decoupled:
            grad = grad + a.weight_decay * self.flat
        mean, square = self.buffers["mean"], self.buffers["square"]
        # In place, which a CUDA graph needs.
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        # Both bias corrections in one factor; ε is scaled so that the quotient is torch's.
        scale = (1 - beta2**step) ** 0.5
        size = (rate * (scale / (1 - beta1**step))).unsqueeze(1)
        delta = mean.div(square.sqrt().add_(a.eps * scale)).mul_(size)
        if a.weight_decay and self.decoupled:
            delta += (rate * a.weight_decay).unsqueeze(1) * self.flat
        self.subtract(delta, by.alive)


class AdamW(Adam):
    """torch.optim.AdamW."""

    class Arguments(Adam.Arguments):
        """As in torch.optim."""

        weight_decay: float = Field(1e-2, ge=0)

    decoupled = True
