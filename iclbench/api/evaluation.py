"""What an evaluation may use, and how a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .prompts import map_tensors, to_device

if TYPE_CHECKING:
    from .grader import Grader


Model = Callable[[Any], Tensor]


@dataclass(frozen=True)
class EvaluationContext:
    """What an evaluation may use.

    `generator` is for random numbers, `folder` for files. A model sees at most `batch_size`
    prompts at once (None: all). `grader` scores the text that a model writes.
    """

    device: torch.device
    generator: torch.Generator
    folder: Path | None = None
    batch_size: int | None = None
    grader: Grader | None = None


def predict(model: Model, prompt: Any, context: EvaluationContext) -> Tensor:
    """The model's prediction for `prompt`, (B, P, W), in float64 on the CPU."""
    total = len(prompt[0])
    size = context.batch_size or total
    parts = []
    for start in range(0, total, size):
        part = map_tensors(lambda t, s=start: t[s : s + size], prompt)
        parts.append(model(to_device(part, context.device)).to("cpu", torch.float64))
    return torch.cat(parts)
