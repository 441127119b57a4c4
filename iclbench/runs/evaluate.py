"""Evaluating a model, and a task's floor, on a fixed set of prompts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..api.errors import RunError
from ..api.evaluation import Answered, EvaluationContext
from ..api.metric import Metric
from ..api.names import is_plain_name
from ..api.prompts import Batch, map_tensors
from ..api.task import Task
from .limits import Limits
from .statistics import GRADE

#: How far a fraction may lie outside 0 and 1.
ROUNDING = 1e-6
#: At most this many prompts of a batch have a floor: exact answers take time.
FLOOR_PROMPTS = 4096

#: Exact floors of evaluation sets by the digest of their prompts: the runs of a process share them.
_exact_floors: dict[tuple[type, str], list[dict[str, Tensor]]] = {}
#: The number of evaluation sets whose floors are kept.
KEPT = 16


def evaluate(
    task: Task[Any],
    model: nn.Module,
    batches: list[Batch],
    context: EvaluationContext,
    metrics: list[Metric],
    *,
    limits: list[Limits] | None = None,
) -> dict[str, np.ndarray]:
    """Every metric's value for each prompt: (prompts,), or (prompts, axis).

    The task's errors are within `limits`, one per batch; None: those of the batches.
    """
    limits = limits or limits_of(task, batches)
    parts = []
    with torch.no_grad():
        for batch, limit in zip(batches, limits, strict=True):
            # Predictions are kept only where somebody may ask for them again.
            shared = replace(context, answered=Answered(batch.prompt)) if metrics else context
            values = _on_cpu(task.evaluate(model, batch, shared))
            _require_sound(task, values, len(batch.target))
            values = limit.apply(values)
            for metric in metrics:
                _add(values, metric, model, batch, metric.compute(model, task, batch, shared))
            parts.append(values)
    return _combined(task, parts)


def floor(
    task: Task[Any],
    batches: list[Batch],
    model: nn.Module | None = None,
    metrics: Sequence[Metric] = (),
    context: EvaluationContext | None = None,
    *,
    limits: list[Limits] | None = None,
) -> dict[str, np.ndarray]:
    """The task's floor on the first 4,096 prompts of each batch, and those of further metrics.

    The latter may depend on `model`, which they are measured for. The task's errors are within
    `limits`, as in `evaluate`.
    """
    if context is None:
        context = EvaluationContext(torch.device("cpu"), torch.Generator())
    limits = limits or limits_of(task, batches)
    first = [_first(batch) for batch in batches]
    parts = []
    with torch.no_grad():
        floors = _floors(task, first, context)
        for batch, limit, values in zip(first, limits, floors, strict=True):
            part = limit.apply(values)
            for metric in metrics:
                if model is not None:
                    _add(part, metric, model, batch, metric.floor(model, task, batch))
            parts.append(part)
    return _combined(task, parts)


def require_primary(task: Task[Any], values: Mapping[str, Any]) -> None:
    """Raise RunError unless values of a task's metrics hold the one that it ranks by."""
    primary = task.primary.metric
    if primary not in values:
        raise RunError(f"task {task.name} ranks by {primary}, not in {', '.join(values)}")


def _require_sound(task: Task[Any], values: Mapping[str, Tensor], prompts: int) -> None:
    """Raise RunError for values of a task's own metrics that no record could hold.

    A metric may measure the first prompts only, unless the task ranks by it and it is no grade.
    """
    axes = task.axes
    for name, value in values.items():
        if not is_plain_name(name):
            raise RunError(f"task {task.name}: {name!r} can't be the name of a metric")
        expected = (prompts, *([len(axes[name].values)] if name in axes else []))
        whole = name == task.primary.metric and not name.startswith(GRADE)
        rows = len(value) if value.ndim else 0
        fits = rows == prompts or (rows < prompts and not whole)
        if not fits or value.shape != (rows, *expected[1:]):
            raise RunError(f"task {task.name}: {name} is {tuple(value.shape)}, not {expected}")
        # A sum of rounded parts may pass 1 by its last bits.
        if name in task.fractions and ((value < -ROUNDING) | (value > 1 + ROUNDING)).any():
            raise RunError(f"task {task.name}: {name} is a fraction, but not from 0 to 1")


def limits_of(task: Task[Any], batches: list[Batch]) -> list[Limits]:
    """The limits of the task's errors on each batch."""
    with torch.no_grad():
        return [Limits.of(task, batch) for batch in batches]


def _floors(
    task: Task[Any], batches: list[Batch], context: EvaluationContext
) -> list[dict[str, Tensor]]:
    """The task's floor on each batch; an exact one is kept for other runs of this process."""
    if task.floor_kind != "exact":
        return [_on_cpu(task.floor(batch, context)) for batch in batches]
    # The class itself: one that is corrected in a notebook has the same name.
    key = type(task), digest_of_prompts(task, batches)
    if key not in _exact_floors:
        values = [_on_cpu(task.floor(batch, context)) for batch in batches]
        while len(_exact_floors) >= KEPT:
            _exact_floors.pop(next(iter(_exact_floors)))
        _exact_floors[key] = values
    return _exact_floors[key]


def digest_of_prompts(task: Task[Any], batches: list[Batch]) -> str:
    """SHA-256 of all that an exact floor follows from: the task, the prompts and their targets."""
    digest = hashlib.sha256(f"{type(task)} {task.config.model_dump_json()}".encode())
    for batch in batches:
        for tensor in (*batch.prompt, batch.target, *batch.truth.values()):
            digest.update(f"{tensor.shape} {tensor.dtype}".encode())
            digest.update(np.ascontiguousarray(tensor.numpy()).tobytes())
    return digest.hexdigest()


def _first(batch: Batch) -> Batch:
    """The prompts that have a floor."""
    if len(batch.target) <= FLOOR_PROMPTS:
        return batch
    return Batch(
        map_tensors(lambda t: t[:FLOOR_PROMPTS], batch.prompt),
        batch.target[:FLOOR_PROMPTS],
        {name: values[:FLOOR_PROMPTS] for name, values in batch.truth.items()},
    )


def _on_cpu(values: dict[str, Tensor]) -> dict[str, Tensor]:
    """The values in float64 on the CPU."""
    return {name: v.to("cpu", torch.float64) for name, v in values.items()}


def _combined(task: Task[Any], parts: list[dict[str, Tensor]]) -> dict[str, np.ndarray]:
    """The values of all batches, float64."""
    return {name: v.numpy() for name, v in task.combine([_on_cpu(p) for p in parts]).items()}


def _add(
    values: dict[str, Tensor],
    metric: Metric,
    model: nn.Module,
    batch: Batch,
    further: dict[str, Tensor],
) -> None:
    """Add a metric's values; raises RunError for one that has a name or a shape it can't have."""
    axes = metric.axes(model)
    for name, value in further.items():
        if name in values:
            raise RunError(f"metric {metric.name}: {name!r} is measured twice")
        expected = (len(batch.target), *([len(axes[name].values)] if name in axes else []))
        if tuple(value.shape) != expected:
            shape = tuple(value.shape)
            raise RunError(f"metric {metric.name}: {name} is {shape}, not {expected}")
    values.update(further)
