"""Evaluating a model, and a task's floor, on a fixed set of prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..api.errors import RunError
from ..api.evaluation import EvaluationContext
from ..api.metric import Metric
from ..api.prompts import Batch
from ..api.task import Task


def evaluate(
    task: Task[Any],
    model: nn.Module,
    batches: list[Batch],
    context: EvaluationContext,
    metrics: list[Metric],
) -> dict[str, np.ndarray]:
    """Every metric's value for each prompt: (prompts,), or (prompts, axis)."""
    parts = []
    with torch.no_grad():
        for batch in batches:
            values = dict(task.evaluate(model, batch, context))
            for metric in metrics:
                _add(values, metric, metric.compute(model, task, batch, context))
            parts.append(values)
    return _combined(task, parts)


def floor(
    task: Task[Any],
    batches: list[Batch],
    model: nn.Module | None = None,
    metrics: Sequence[Metric] = (),
    context: EvaluationContext | None = None,
) -> dict[str, np.ndarray]:
    """The task's floor on the same prompts, and the floors of further metrics.

    The latter may depend on `model`, which they are measured for.
    """
    parts = []
    if context is None:
        context = EvaluationContext(torch.device("cpu"), torch.Generator())
    with torch.no_grad():
        for batch in batches:
            values = dict(task.floor(batch, context))
            for metric in metrics:
                if model is not None:
                    _add(values, metric, metric.floor(model, task, batch))
            parts.append(values)
    return _combined(task, parts)


def _combined(task: Task[Any], parts: list[dict[str, Tensor]]) -> dict[str, np.ndarray]:
    """The values of all batches, float64."""
    on_cpu = [{n: v.to("cpu", torch.float64) for n, v in part.items()} for part in parts]
    return {name: values.numpy() for name, values in task.combine(on_cpu).items()}


def _add(values: dict[str, Tensor], metric: Metric, further: dict[str, Tensor]) -> None:
    taken = sorted(set(further) & set(values))
    if taken:
        raise RunError(f"metric {metric.name}: {taken[0]!r} is measured twice")
    values.update(further)
