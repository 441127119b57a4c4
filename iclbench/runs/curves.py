"""Validation: how good models are while they are trained, on prompts that no board uses."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from ..api.costs import Operations, ValidationCurve
from ..api.digits import digits
from ..api.evaluation import EvaluationContext
from ..api.prompts import Batch
from ..api.random import derive_seed, torch_generator
from ..precision import DTYPES
from ..training.clock import Clock
from ..training.loop import Training
from ..training.random_streams import forked_generators
from ..training.validation import SHARE, Validation, points_of
from .evaluate import evaluate, limits_of
from .operations import PASSES
from .plan import Plan

#: Limits of the number of validation prompts.
FEWEST, MOST = 64, 1024
#: By operations, validation takes this share: its small batches cost more time than training's.
AIM = SHARE / 2
#: Prompts of the evaluation that is timed before training.
PROBE = 16
#: The scores of a model at a point of the curve.
QUANTILES = {"q05": 0.05, "median": 0.5, "q95": 0.95}
SCORES = ("mean", *QUANTILES)
Scores = dict[str, float | None]
#: Significant digits of a score.
SIGNIFICANT = 5


class Validator:
    """Scores models by the number that a plan's task ranks by, on validation prompts."""

    def __init__(self, plan: Plan, prompts: int, device: torch.device, batch_size: int) -> None:
        self.plan, self.prompts = plan, prompts
        self._device, self._batch_size = device, batch_size
        dtype = DTYPES[plan.spec.dtype]
        self._batches = plan.task.evaluation_batches(prompts, validation_seed(plan), dtype)
        self._limits = limits_of(plan.task, self._batches)

    def score(self, module: nn.Module) -> Scores | None:
        """Return the mean and quantiles over the prompts of the digits, or of the metric.

        None where the metric is a grade, since grading costs money.
        """
        task = self.plan.task
        generator = torch_generator("cpu", "validation")
        context = EvaluationContext(self._device, generator, batch_size=self._batch_size)
        values = evaluate(task, module, self._batches, context, [], limits=self._limits)
        if task.primary.metric not in values:
            return None
        numbers = values[task.primary.metric]
        if numbers.ndim == 2:
            numbers = numbers.mean(axis=1)
        if task.statistic == "mean digits":
            numbers = digits(numbers, task.errors[task.primary.metric])
        if not np.isfinite(numbers).all():
            return dict.fromkeys(SCORES)
        quantiles = np.quantile(numbers, list(QUANTILES.values()))
        scores = {"mean": numbers.mean(), **dict(zip(QUANTILES, quantiles, strict=True))}
        return {name: float(f"{score:.{SIGNIFICANT}g}") for name, score in scores.items()}


def validation_seed(plan: Plan) -> int:
    """The seed of the validation prompts, which is not that of the evaluation."""
    return derive_seed("validation", plan.spec.eval_seed)


def prepare_validation(
    plans: Sequence[Plan], training: Training, batch_size: int
) -> tuple[Validation, Validator] | None:
    """Prepare to evaluate a training's replicas, those of `plans` in order.

    Also returns the first plan's validator. None where a model can't be scored.
    """
    recipe, device, task = training.recipe, training.device, plans[0].task
    points = points_of(recipe.steps, recipe.chunk)
    affordable = AIM * PASSES * recipe.batch * recipe.steps / max(1, len(points) * len(task.cases))
    prompts = min(MOST, max(FEWEST, int(affordable)))
    preparing, probing = Clock(device), Clock(device)
    with preparing.running(), forked_generators(device):
        validators = [Validator(plan, prompts, device, batch_size) for plan in plans]
        probe = Validator(plans[0], PROBE, device, batch_size)
        module = copy.deepcopy(training.replicas.template).eval()
        with probing.running():
            scores = probe.score(module)
    if scores is None:
        return None
    of_row = [v for plan, v in zip(plans, validators, strict=True) for _ in plan.spec.seeds]
    expected = probing.counted * prompts / PROBE * len(of_row)
    validation = Validation(lambda row, m: of_row[row].score(m) or {}, points, expected, device)
    validation.clock = preparing
    return validation, validators[0]


def validation_curve(
    plan: Plan,
    validation: Validation,
    prompts: int,
    trained: Clock,
    rows: range,
    operations: Operations | None,
) -> ValidationCurve:
    """The curve of a plan's replicas, which are `rows` of the program."""
    count = len(validation.scores[0]) if validation.scores else 1
    forward = operations.forward if operations else None
    per_step = None if forward is None else PASSES * forward * plan.recipe.batch
    columns = {
        name: [[point[row][name] for point in validation.scores] for row in rows]
        for name in SCORES
    }
    return ValidationCurve(
        metric=plan.task.primary.metric,
        statistic=plan.task.statistic,
        seed=validation_seed(plan),
        prompts=prompts,
        steps=validation.steps,
        seconds=[seconds / count for seconds in validation.seconds],
        operations=[None if per_step is None else per_step * step for step in validation.steps],
        share=validation.clock.counted / trained.counted,
        **columns,
    )
