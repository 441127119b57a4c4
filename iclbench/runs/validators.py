"""Validation: how good models are while they are trained, on prompts that no board uses."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..api.costs import SCORES, Operations, ValidationCurve
from ..api.digits import digits
from ..api.errors import is_out_of_memory
from ..api.evaluation import EvaluationContext
from ..api.random import derive_seed, torch_generator
from ..api.recipe import Recipe
from ..devices import free_memory
from ..precision import DTYPES
from ..training.clock import Clock
from ..training.loop import Trained, Training
from ..training.random_streams import forked_generators
from ..training.validation import SHARE, Validation, points_of
from .evaluate import evaluate, limits_of, require_primary
from .operations import step_operations
from .plan import Plan
from .settings import default_eval_batch
from .statistics import GRADE

#: Limits of the number of validation prompts.
FEWEST, MOST = 64, 1024
#: By operations, validation takes this share: its small batches cost more time than training's.
AIM = SHARE / 2
#: A step costs about a forward pass, and a backward pass of twice its operations.
PASSES = 3
#: Prompts of the two evaluations that are timed before training.
PROBES = (8, 32)
#: The scores of a model at a point of the curve, besides the mean.
QUANTILES = {"q05": 0.05, "median": 0.5, "q95": 0.95}
Scores = dict[str, float | None]
#: Significant digits in a curve.
SIGNIFICANT = 5


class Validator:
    """Scores models by the number that a plan's task ranks by, on validation prompts."""

    def __init__(
        self, plan: Plan, prompts: int, device: torch.device, batch_size: int | None = None
    ) -> None:
        self.plan = plan
        self.device, self._batch_size = device, batch_size or default_eval_batch(device)
        dtype = DTYPES[plan.spec.dtype]
        self._batches = plan.task.evaluation_batches(prompts, validation_seed(plan), dtype)
        self._limits = limits_of(plan.task, self._batches)

    def score(self, module: nn.Module) -> Scores | None:
        """Return the mean and quantiles over the prompts of the digits, or of the metric.

        None where the metric is a grade, since grading costs money. Where memory is short beside a
        training, from then on with half as many prompts at once. Raises RunError where the task
        does not measure what it ranks by.
        """
        try:
            return self._score(module)
        except Exception as error:
            if self._batch_size == 1 or not is_out_of_memory(error):
                raise
        free_memory()
        self._batch_size //= 2
        return self.score(module)

    def _score(self, module: nn.Module) -> Scores | None:
        task = self.plan.task
        generator = torch_generator("cpu", "validation")
        context = EvaluationContext(self.device, generator, batch_size=self._batch_size)
        values = evaluate(task, module, self._batches, context, [], limits=self._limits)
        primary = task.primary.metric
        if primary.startswith(GRADE) and primary not in values:  # nobody was asked
            return None
        require_primary(task, values)
        numbers = values[primary]
        if numbers.ndim == 2:
            numbers = numbers.mean(axis=1)
        if task.statistic == "mean digits":
            numbers = digits(numbers, task.errors[primary])
        if not np.isfinite(numbers).all():
            return dict.fromkeys(SCORES)
        quantiles = np.quantile(numbers, list(QUANTILES.values()))
        scores = {"mean": numbers.mean(), **dict(zip(QUANTILES, quantiles, strict=True))}
        return {name: _rounded(score) for name, score in scores.items()}


def _prompts_of(plan: Plan) -> str:
    """What the validation prompts follow from; plans of one program may differ in it."""
    return str(plan.task.config.model_dump_json())


def _rounded(number: float) -> float:
    return float(f"{number:.{SIGNIFICANT}g}")


def validation_seed(plan: Plan) -> int:
    """The seed of the validation prompts, which is not that of the evaluation."""
    return derive_seed("validation", plan.spec.eval_seed)


@dataclass
class RunValidation(Validation):
    """A validation of plans, which knows the number of its prompts."""

    prompts: int = 0


def prepare_validation(
    plans: Sequence[Plan], training: Training, batch_size: int | None
) -> RunValidation | None:
    """Prepare to evaluate a training's replicas, those of `plans` in order.

    None where the task ranks by a grade, since grading costs money.
    """
    device, prompts = training.device, validation_prompts(plans[0], training.recipe)
    clock = Clock(device)
    with clock.running(), forked_generators(device):
        validators: dict[str, Validator] = {}
        for plan in plans:
            if _prompts_of(plan) not in validators:
                validators[_prompts_of(plan)] = Validator(plan, prompts, device, batch_size)
        module = copy.deepcopy(training.replicas.template).eval()
        probes = [Validator(plans[0], count, device, batch_size) for count in PROBES]
        if probes[0].score(module) is None:
            return None
        expected = _expected_seconds([_seconds_of(probe, module) for probe in probes], prompts)
    of_row = [validators[_prompts_of(plan)] for plan in plans for _ in plan.spec.seeds]
    return RunValidation(
        score=lambda row, module: of_row[row].score(module) or {},
        points=points_of(training.recipe.steps, training.recipe.chunk),
        expected_seconds=expected * len(of_row),
        device=device,
        prepared_in=clock.counted,
        prompts=prompts,
    )


def _seconds_of(validator: Validator, module: nn.Module) -> float:
    clock = Clock(validator.device)
    with clock.running():
        validator.score(module)
    return clock.counted


def _expected_seconds(seconds: Sequence[float], prompts: int) -> float:
    """What the evaluation of one model takes: a fixed part and a part per prompt."""
    few, many = PROBES
    per_prompt = max(0.0, seconds[1] - seconds[0]) / (many - few)
    return seconds[1] + per_prompt * (prompts - many)


def validation_prompts(plan: Plan, recipe: Recipe) -> int:
    """How many prompts of each case to evaluate on, by operations, so that runs choose alike."""
    points = len(points_of(recipe.steps, recipe.chunk)) * len(plan.task.cases)
    affordable = AIM * PASSES * recipe.batch * recipe.steps / max(1, points)
    return min(MOST, max(FEWEST, int(affordable)))


def validation_curve(
    plan: Plan,
    validation: RunValidation | None,
    trained: Trained,
    rows: range,
    operations: Operations | None,
) -> ValidationCurve | None:
    """The curve of a plan's replicas, which are `rows` of the program."""
    if validation is None or plan.recipe is None:
        return None
    count, recipe = len(trained.states), plan.recipe
    return ValidationCurve(
        metric=plan.task.primary.metric,
        statistic=plan.task.statistic,
        seed=validation_seed(plan),
        prompts=validation.prompts,
        steps=validation.steps,
        seconds=[_rounded(seconds / count) for seconds in validation.seconds],
        operations=[step_operations(operations, recipe, step) for step in validation.steps],
        share=validation.spent / trained.clock.counted if trained.steps else 0.0,
        **{
            name: [[point[row][name] for point in validation.scores] for row in rows]
            for name in SCORES
        },
    )
