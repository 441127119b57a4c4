"""How much rounding alone moves a model's results: the tolerance that a comparison may need.

Another processor adds in another order, and a model amplifies that by as much as it is badly
conditioned, which no constant knows. So the models are measured again with every parameter and
every number of a prompt moved by at most ε relatively, a few times.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..api.prompts import map_tensors
from ..api.random import torch_generator
from .measure import Measured, measure
from .models import Model
from .plan import Plan
from .statistics import Values

#: How often results are measured with other rounding. The largest of so few moves underestimates
#: what another machine may do, hence the factor.
DRAWS = 8
FACTOR = 4.0
#: What the answers to the first prompts are called among metrics.
ANSWERS = "answers to the first prompts"


def measure_rounded(
    plan: Plan, models: Sequence[Model], device: torch.device, seed: int = 0
) -> list[Measured]:
    """What `measure` gives with the numbers of models and prompts moved in their last place."""
    results = []
    for draw in range(DRAWS):
        generator = torch_generator("cpu", "rounding", seed * DRAWS + draw)
        moved = [replace(model, module=_moved(model.module, generator)) for model in models]
        results.append(measure(plan, moved, device))
    return results


def spread(measured: Measured, moved: Sequence[Measured]) -> dict[str, Values]:
    """By metric, how far rounding moves each value, at least as far as the median of all moves.

    Values that are not finite in any draw may move arbitrarily far.
    """
    spreads = {}
    for name, values in measured.values.items():
        changes = [np.abs(other.values[name] - values) for other in moved]
        largest = np.nan_to_num(np.max(changes, axis=0), nan=np.inf)
        spreads[name] = FACTOR * np.maximum(largest, np.median(largest))
    if measured.answers is not None:
        spreads[ANSWERS] = _spread_of_answers(measured.answers, moved)
    return spreads


def _spread_of_answers(answers: np.ndarray, moved: Sequence[Measured]) -> np.ndarray:
    """How far rounding moves each answer, at least as far as the median of its seed's.

    An answer that is not finite in a draw says nothing of how far it moves.
    """
    others = [other.answers for other in moved if other.answers is not None]
    changes = [np.abs(other - answers) for other in others]
    largest = np.max([np.where(np.isfinite(change), change, 0.0) for change in changes], axis=0)
    least = np.median(largest, axis=(1, 2), keepdims=True)
    return np.asarray(FACTOR * np.maximum(largest, least))


def _moved(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """A copy with other last places, which also moves the prompts that it is called with."""
    moved = copy.deepcopy(module)
    with torch.no_grad():
        for tensor in [*moved.parameters(), *moved.buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(_in_the_last_place(tensor, generator))

    def move_prompt(module: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        prompt, *rest = arguments
        return (map_tensors(lambda t: _in_the_last_place(t, generator), prompt), *rest)

    moved.register_forward_pre_hook(move_prompt)
    return moved


def _in_the_last_place(tensor: Tensor, generator: torch.Generator) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    uniform = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
    factors = 1.0 + torch.finfo(tensor.dtype).eps * (2.0 * uniform - 1.0)
    return (tensor.double().cpu() * factors).to(tensor)
