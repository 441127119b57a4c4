"""Measuring the models of a plan, and its floor, on the evaluation prompts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from ..api.evaluation import EvaluationContext
from ..api.grader import Grader
from ..api.prompts import Batch
from ..api.random import derive_seed, torch_generator
from ..api.scoring import Axis
from ..devices import keep_freed_memory
from ..precision import DTYPES
from ..training.random_streams import forked_generators, seed_generators
from .evaluate import evaluate, floor, limits_of, require_primary
from .first_answers import first_answers
from .models import Model
from .plan import Plan
from .settings import default_eval_batch
from .shared_prompts import evaluation_parts
from .statistics import Values, as_kept


class Measured(NamedTuple):
    """Metrics by name, (seeds, prompts[, axis]); those of the floor, (prompts[, axis]); seconds.

    Errors are within the limits of `iclbench.runs.limits`, and all values are rounded by `as_kept`.
    The floor is that of the first 4,096 prompts of each case. `target_size` is the root mean square
    of the first part's targets, 0 for classes, `digest` that of all prompts' raw draws, and
    `answers` those of `first_answers`.
    """

    values: dict[str, Values]
    floor_values: dict[str, np.ndarray]
    seconds: float
    target_size: float
    digest: str
    answers: np.ndarray | None = None


def measure(
    plan: Plan,
    models: list[Model],
    device: torch.device,
    eval_batch: int | None = None,
    *,
    grader: Grader | None = None,
    folder: Path | None = None,
) -> Measured:
    """Every metric of every model on every prompt, `eval_batch` prompts at once.

    None: see `default_eval_batch`. A grader may keep its answers in `folder`. The floor is
    measured beside the last model, since some metrics compare a model with a floor of its own.
    Raises RunError where the metric that the task ranks by is missing.
    """
    started = time.perf_counter()
    if device.type == "cpu":
        keep_freed_memory()
    spec = plan.spec
    modules = [model.module.to(device).eval() for model in models]
    contexts = [
        EvaluationContext(
            device,
            torch_generator("cpu", "evaluation", spec.eval_seed),
            folder,
            eval_batch or default_eval_batch(device),
            grader,
        )
        for _ in models
    ]
    requested = list(plan.metrics)
    by_part: list[dict[str, Values]] = []
    floor_values: dict[str, np.ndarray] = {}
    target_size, answers = 0.0, None
    with forked_generators(device), evaluation_parts(plan) as (parts, digest):
        # A model may draw when it answers.
        seed_generators(derive_seed("evaluation", spec.eval_seed), device)
        for batches in parts:
            limits = limits_of(plan.task, batches)
            by_model = [
                evaluate(plan.task, module, batches, context, requested, limits=limits)
                for module, context in zip(modules, contexts, strict=True)
            ]
            require_primary(plan.task, by_model[0])
            by_part.append({name: np.stack([m[name] for m in by_model]) for name in by_model[0]})
            if len(by_part) == 1:
                target_size = _target_size(batches)
                floor_values = floor(
                    plan.task, batches, modules[-1], requested, contexts[-1], limits=limits
                )
                answers = first_answers(modules, batches[0], device)
    values = {
        name: as_kept(np.concatenate([part[name] for part in by_part], axis=1))
        for name in by_part[0]
    }
    floor_values = {name: as_kept(array) for name, array in floor_values.items()}
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    seconds = time.perf_counter() - started
    return Measured(values, floor_values, seconds, target_size, digest.hexdigest(), answers)


def _target_size(batches: list[Batch]) -> float:
    """The root mean square of the targets; 0 if they are classes."""
    real = [batch.target for batch in batches if batch.target.is_floating_point()]
    squares = [target.double().square().nanmean().item() for target in real]
    return float(np.sqrt(np.mean(squares))) if squares else 0.0


def analyse(
    plan: Plan, models: list[Model], device: torch.device, eval_batch: int | None = None
) -> dict[str, Any]:
    """What each metric reports of each model as a whole: metric → a dictionary for each model.

    A model is evaluated on `eval_batch` prompts at once, as by `measure`.
    """
    if not plan.metrics:
        return {}
    batches = plan.task.evaluation_batches(
        plan.spec.eval_prompts, plan.spec.eval_seed, DTYPES[plan.spec.dtype]
    )
    analyses: dict[str, Any] = {}
    at_once = eval_batch or default_eval_batch(device)
    for metric in plan.metrics:
        by_model = []
        for model in models:
            context = EvaluationContext(
                device, torch_generator("cpu", "analysis"), batch_size=at_once
            )
            module = model.module.to(device).eval()
            with torch.no_grad():
                by_model.append(metric.analysis(module, plan.task, batches, context))
        if any(by_model):
            analyses[metric.name] = by_model
    return analyses


def axes_of(plan: Plan, model: Model) -> dict[str, Axis]:
    """The second axis of each metric that has one, the task's own and those requested."""
    requested = [metric.axes(model.module) for metric in plan.metrics]
    return dict(plan.task.axes) | {name: axis for axes in requested for name, axis in axes.items()}
