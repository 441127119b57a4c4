"""The models' answers to the first prompts, which people read beside the targets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..api.evaluation import EvaluationContext, predict
from ..api.prompts import Batch, map_tensors
from ..api.random import torch_generator
from ..api.results import FIRST_PROMPTS, MOST_NUMBERS, Answers
from ..api.statistics import finite


def first_answers(
    modules: Sequence[nn.Module], batch: Batch, device: torch.device
) -> np.ndarray | None:
    """Predictions for the batch's first prompts, (models, prompts, numbers), float64.

    None where an answer has more than MOST_NUMBERS numbers.
    """
    prompt = map_tensors(lambda t: t[:FIRST_PROMPTS], batch.prompt)
    answers = []
    with torch.no_grad():
        for module in modules:
            # A stream of its own, so that models that draw numbers are measured as before.
            context = EvaluationContext(device, torch_generator("cpu", "first answers"))
            answers.append(predict(module, prompt, context).flatten(1).numpy())
            if answers[0].shape[1] > MOST_NUMBERS:
                return None
    return np.stack(answers)


def as_numbers(answers: np.ndarray) -> Answers:
    """The answers as a record holds them."""
    return tuple(
        tuple(tuple(finite(float(v)) for v in answer) for answer in prompts) for prompts in answers
    )


def as_array(answers: Answers) -> np.ndarray:
    """A record's answers as `first_answers` gives them; what is not finite is NaN."""
    return np.array(answers, dtype=np.float64)
