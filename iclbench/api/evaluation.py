"""What an evaluation may use, and how a model is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .prompts import map_tensors, to_device

if TYPE_CHECKING:
    from .grader import Grader


Model = Callable[[Any], Tensor]


class Answered:
    """The models' predictions for one prompt, so that every metric reads the same ones."""

    def __init__(self, prompt: Any) -> None:
        self._prompt = prompt
        self._predictions: list[tuple[Model, Tensor]] = []

    def find(self, model: Model, prompt: Any) -> Tensor | None:
        """A copy of the prediction, which the caller may change; None if there is none yet."""
        known = (p for m, p in self._predictions if m is model and prompt is self._prompt)
        prediction = next(known, None)
        return None if prediction is None else prediction.clone()

    def keep(self, model: Model, prompt: Any, prediction: Tensor) -> None:
        """Keep a prediction, unless it is for another prompt."""
        if prompt is self._prompt:
            self._predictions.append((model, prediction.clone()))


@dataclass(frozen=True)
class EvaluationContext:
    """What an evaluation may use.

    `generator` is for random numbers, `folder` for files. A model sees at most `batch_size`
    prompts at once (None: all). `grader` scores the text that a model writes. `answered` holds the
    predictions for the batch that is evaluated; `predict` fills and reads it.
    """

    device: torch.device
    generator: torch.Generator
    folder: Path | None = None
    batch_size: int | None = None
    grader: Grader | None = None
    answered: Answered = field(default_factory=lambda: Answered(None), repr=False, compare=False)


def predict(model: Model, prompt: Any, context: EvaluationContext) -> Tensor:
    """The model's prediction for `prompt`, (B, P, W), in float64 on the CPU.

    For the batch that is evaluated it is computed once: a metric that asks again gets a copy.
    """
    known = context.answered.find(model, prompt)
    if known is not None:
        return known
    total = len(prompt[0])
    size = context.batch_size or total
    parts = []
    for start in range(0, total, size):
        part = map_tensors(lambda t, s=start: t[s : s + size], prompt)
        parts.append(model(to_device(part, context.device)).to("cpu", torch.float64))
    prediction = torch.cat(parts)
    context.answered.keep(model, prompt, prediction)
    return prediction
