"""Programs around a program: gradient accumulation and autocast."""

from __future__ import annotations

import torch
from torch import Tensor

from ...api.prompts import Batch
from .program import GradientProgram, prompts_of


class Accumulated:
    """Takes a batch in equal parts, one after another, and averages their gradients."""

    def __init__(self, program: GradientProgram, parts: int) -> None:
        self.program, self.name, self.parts = program, program.name, parts

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `GradientProgram`."""
        size = batch.target.shape[1] // self.parts
        losses, gradients = self.program(prompts_of(batch, 0, size))
        # The next call may write its results where these are.
        losses, gradients = losses.clone(), gradients.clone()
        for index in range(1, self.parts):
            more, further = self.program(prompts_of(batch, index * size, (index + 1) * size))
            losses.add_(more)
            gradients.add_(further)
        return losses.div_(self.parts), gradients.div_(self.parts)


class Autocast:
    """Multiplies matrices in a dtype of less precision; parameters and gradients keep theirs."""

    def __init__(self, program: GradientProgram, device: torch.device, dtype: torch.dtype) -> None:
        self.program, self.name = program, program.name
        self.device, self.dtype = device, dtype

    def __call__(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """See `GradientProgram`."""
        with torch.autocast(self.device.type, self.dtype):
            return self.program(batch)
