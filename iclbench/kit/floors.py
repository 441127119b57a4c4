"""Whether a task's floor is there, and is no worse than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import torch

from ..api.evaluation import EvaluationContext
from ..api.floor import FloorKind
from ..api.prompts import Batch
from ..api.random import torch_generator
from ..api.task import Task
from ..runs.checks import expect

#: Prompts on which a floor and chance are compared.
PROMPTS = 64
#: A mean difference of this many standard errors is significant, also where it has heavy tails.
SIGNIFICANT = 4.0
#: The largest relative difference of a reference from an exact answer.
APART = 1e-3
#: Equal values may differ by this much.
ROUNDING = 1e-9


def check_floor(task: Task[Any]) -> None:
    """Raise ConformanceError for a floor that is missing, or significantly worse than chance."""
    kind, metric = task.floor_kind, task.primary.metric
    kinds = get_args(FloorKind)
    expect(kind in kinds, f"floor_kind is {kind!r}, not one of {', '.join(kinds)}")
    context = EvaluationContext(torch.device("cpu"), torch_generator("cpu", "conformance"))
    batches = task.evaluation_batches(PROMPTS, 0, torch.float64)
    floors = [task.floor(batch, context) for batch in batches]
    if not all(metric in values for values in floors):
        expect(
            kind == "none",
            f"floor_kind is {kind!r}, but neither reference() nor floor() gives {metric}",
        )
        return
    best = torch.cat([_per_prompt(values[metric]) for values in floors])
    chance = torch.cat(
        [
            _per_prompt(task.chance(batch)[metric])[: len(values[metric])]
            for values, batch in zip(floors, batches, strict=True)
        ]
    )
    if kind == "exact":
        _check_determined(task, batches)
    worse = best - chance if task.primary.better == "lower" else chance - best
    known = worse.isfinite()
    best, chance, worse = best[known], chance[known], worse[known]
    if len(worse) > 1:
        error = float(worse.std()) / len(worse) ** 0.5
        expect(
            float(worse.mean()) <= max(SIGNIFICANT * error, ROUNDING),
            f"the floor is worse than chance: its mean {metric} is {float(best.mean()):.3g}, "
            f"that of chance {float(chance.mean()):.3g}",
        )


def _check_determined(task: Task[Any], batches: Sequence[Batch]) -> None:
    """The best predictor, if a task with an exact floor names one, gives the exact answer."""
    for batch in batches:
        reference = task.reference(batch)
        if reference is not None and batch.target.is_floating_point():
            exact = task.exact_answer(batch)
            apart = (reference - exact).square().nanmean()
            expect(
                bool(apart <= APART**2 * exact.square().nanmean()),
                "floor_kind is 'exact', but reference() differs from exact_answer(): where the "
                "prompt does not determine the answer, the floor is of the kind 'bayes'",
            )


def _per_prompt(values: torch.Tensor) -> torch.Tensor:
    """Values (B,); those of a metric with an axis are averaged."""
    return values.nanmean(dim=1) if values.ndim > 1 else values
