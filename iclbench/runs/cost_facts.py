"""The facts of a record about the cost of its training that follow from its request."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from ..api.budget import Budget
from ..api.costs import BudgetReport, ValidationCurve
from ..api.recipe import Recipe
from ..api.record import Record
from ..console import counted
from ..precision import DTYPES, full_precision
from ..training.platforms import moved_names
from ..training.schedules import fit_schedule
from ..training.validation import points_of
from .budget import steps_of, track_of
from .comparison import Check, same
from .models import Model, built_module
from .operations import count_operations, step_operations
from .plan import Plan
from .ready_models import ReadyModels
from .validators import Validator, validation_prompts, validation_seed

#: The claimed core time must be at least the measured one divided by this: processors differ.
CHEAPER = 10.0
#: By how much the last point of a validation curve may be better than the weights are: in mean
#: digits, and relatively for a mean error, which a few prompts decide, and for another metric.
NEAR_DIGITS, NEAR_ERROR, NEAR_METRIC = 0.1, 0.5, 0.05
#: A step of one model takes at least this long.
LEAST_SECONDS = 1e-6
#: By how much, relatively, times may contradict each other: clocks are read one after another.
NEAR_SECONDS = 0.1
#: A training may take this many times its budget: a rate that is measured before fixes the steps,
#: and numbers that are too small to be computed quickly have made it twice as long.
MOST_OVER = 10.0
#: Nor may all its steps take less than this part of its budget.
LEAST_PART = 0.01


def compare_costs(record: Record, plan: Plan) -> Iterator[Check]:
    """A check for every fact about budget, track, operations and validation."""
    # The plan to verify a record has no checkpoint to start from.
    yield same("track", record.track, None if record.spec.init is not None else track_of(plan))
    yield from _operations(record, plan)
    budget, curve, recipe = record.budget, record.validation_curve, plan.recipe
    # Older trainings did not measure it; their records say so.
    known = budget is not None or "budget" in record.missing
    yield same("budget", known, recipe is not None)
    if recipe is None:
        yield same("validation curve", curve, None)
        return
    if budget is not None:
        yield from _budget(budget, record, recipe)
    if curve is not None:
        yield from _curve(curve, record, fitted_recipe(record, recipe), plan)


def fitted_recipe(record: Record, recipe: Recipe) -> Recipe:
    """The recipe by which the record's models were trained: its schedule fits the steps."""
    return fit_schedule(recipe, record.budget.steps if record.budget else recipe.steps)


def _operations(record: Record, plan: Plan) -> Iterator[Check]:
    # The plan to verify a training from a file's weights begins at random ones, and freezes none.
    plan = replace(plan, spec=plan.spec.model_copy(update={"freeze": record.spec.freeze}))
    if plan.recipe is not None:
        plan = replace(plan, recipe=fitted_recipe(record, plan.recipe))
    with full_precision(DTYPES[record.spec.dtype]):
        module = built_module(plan, "given")
        steps = record.training.steps if record.training else None
        expected = count_operations(plan, module, steps)
    yield same("operations", record.operations, expected)


def _budget(budget: BudgetReport, record: Record, recipe: Recipe) -> Iterator[Check]:
    """What was asked and how many steps that makes; the times and the rate are claimed."""
    yield same("budget asked", budget.asked, record.spec.budget)
    if budget.asked != record.spec.budget:
        return
    on_cpu = record.environment.device == "cpu"
    if budget.asked is None:
        yield same("budget steps", budget.steps, recipe.steps)
        yield same("budget rate", budget.rate, None)
    else:
        asked = Budget.parse(budget.asked)
        ends_early = all(seed.diverged_at is not None for seed in record.seeds)
        yield from _asked_budget(asked, budget, ends_early)
        yield same("trained on a GPU", not on_cpu, asked.on_gpu)
    if on_cpu and "device" not in _moved(record):
        yield same("device time", budget.device_seconds, None)
    yield from _times(budget, record)


def _moved(record: Record) -> list[str]:
    """What changed while the models were trained, or differs where seeds were trained apart."""
    return moved_names(record.training.note if record.training else None)


def _times(budget: BudgetReport, record: Record) -> Iterator[Check]:
    """The times of one seed, which are claimed, must not contradict each other."""
    training, curve = record.training, record.validation_curve
    if training is None:  # which is a fact of its own
        return
    least = LEAST_SECONDS * training.steps
    shortest = min(
        budget.core_seconds,
        budget.wall_seconds,
        least if budget.device_seconds is None else budget.device_seconds,
    )
    yield Check("budget seconds", shortest, f"at least {least:g}", shortest >= least)
    if budget.device_seconds is None and "threads" not in _moved(record):
        # Besides torch's threads, others of the process may have worked.
        most = budget.wall_seconds * (record.environment.threads + 1)
        in_time = budget.core_seconds <= most
        yield Check("core time of the threads", budget.core_seconds, f"at most {most:g}", in_time)
    wall = training.seconds / len(record.seeds)
    fits = math.isclose(budget.wall_seconds, wall, rel_tol=1e-6)
    yield Check("wall-clock time per seed", budget.wall_seconds, wall, fits)
    if curve is not None and curve.seconds:
        used = budget.core_seconds if budget.device_seconds is None else budget.device_seconds
        # Of seeds that were trained apart, it is the mean of those that did not diverge.
        most = used * len(record.seeds) * (1 + NEAR_SECONDS)
        last = max(curve.seconds)
        yield Check("validation seconds", last, f"at most {most:g}", last <= most)


def _asked_budget(asked: Budget, budget: BudgetReport, ends_early: bool) -> Iterator[Check]:
    """What was claimed of the time must not contradict the track that it gives the row.

    A training `ends_early` where all its models have diverged.
    """
    steps = None
    # A forged rate may be too large for a number of steps.
    if budget.rate is not None and math.isfinite(asked.seconds * budget.rate):
        steps = steps_of(asked, budget.rate)
    yield same("budget steps", budget.steps, steps)
    yield same("time on a GPU", budget.device_seconds is not None, asked.on_gpu)
    used = budget.core_seconds if budget.device_seconds is None else budget.device_seconds
    most = MOST_OVER * asked.seconds
    yield Check(f"{asked.kind} per seed", used, f"at most {most:g}", used <= most)
    if not ends_early:
        least = LEAST_PART * asked.seconds
        yield Check(f"{asked.kind} of all steps", used, f"at least {least:g}", used >= least)


def _curve(curve: ValidationCurve, record: Record, recipe: Recipe, plan: Plan) -> Iterator[Check]:
    """What was validated and when; the scores and the times are claimed."""
    yield same("validation metric", curve.metric, plan.task.primary.metric)
    yield same("validation statistic", curve.statistic, plan.task.statistic)
    yield same("validation seed", curve.seed, validation_seed(plan))
    yield same("validation prompts", curve.prompts, validation_prompts(plan, recipe))
    others = sorted(set(curve.steps) - set(points_of(recipe.steps, recipe.chunk)))
    yield same("validation at other steps", others, [])
    ordered = all(a < b for a, b in itertools.pairwise(curve.steps))
    ordered &= curve.seconds == sorted(curve.seconds) and min(curve.seconds, default=0.0) >= 0
    yield same("validation in order", ordered, True)
    yield same("seeds of the validation", len(curve.mean), len(record.seeds))
    expected = [step_operations(record.operations, recipe, step) for step in curve.steps]
    yield same("validation operations", curve.operations, expected)
    yield Check("validation share", curve.share, "at least 0", curve.share >= 0)


def compare_last_validation(
    record: Record, plan: Plan, models: Sequence[Model], device: torch.device
) -> Iterator[Check]:
    """A check for each seed's last point of the validation curve: the weights must be as good.

    Earlier points are claimed. Where the time limit left out the last step, so is the whole curve.
    """
    curve, training = record.validation_curve, record.training
    if curve is None or training is None or not curve.steps or curve.steps[-1] != training.steps:
        return
    validator = Validator(plan, curve.prompts, device)
    for seed, scores, model in zip(record.seeds, curve.mean, models, strict=True):
        measured = (validator.score(model.module.eval()) or {}).get("mean")
        holds = _is_no_better(scores[-1], measured, plan)
        yield Check(f"seed {seed.seed} last validation", scores[-1], measured, holds)


def _is_no_better(claimed: float | None, measured: float | None, plan: Plan) -> bool:
    """Whether a claimed score is no better than that of the weights, up to rounding.

    It may be worse: scores of a model that amplifies rounding never repeat exactly.
    """
    if claimed is None or measured is None:
        return claimed is None
    if plan.task.statistic == "mean digits":
        return claimed - measured <= NEAR_DIGITS
    sign = 1.0 if plan.task.primary.better == "higher" else -1.0
    most = NEAR_ERROR if plan.task.primary.metric in plan.task.errors else NEAR_METRIC
    return sign * (claimed - measured) <= most * max(abs(claimed), abs(measured))


def compare_costs_again(record: Record, again: ReadyModels, *, exactly: bool) -> Iterator[Check]:
    """A check for the costs that were claimed, against those of training again.

    On the same platform scores must be equal where both were validated; which points the time
    limit leaves out may differ.
    """
    before, now = record.budget, again.budget
    if before is not None and now is not None:
        for name, claimed, measured in (
            ("core time", before.core_seconds, now.core_seconds),
            ("device time", before.device_seconds, now.device_seconds),
        ):
            if claimed is not None and measured is not None:
                holds = claimed >= measured / CHEAPER
                yield Check(f"{name} per seed, again", claimed, measured, holds)
    curves = record.validation_curve, again.validation_curve
    if exactly and curves[0] is not None and curves[1] is not None:
        scores = [
            {step: [seed[i] for seed in curve.mean] for i, step in enumerate(curve.steps)}
            for curve in curves
            if curve is not None
        ]
        common = sorted(scores[0].keys() & scores[1].keys())
        differ = [step for step in common if scores[0][step] != scores[1][step]]
        name, recorded = "validation scores, again", f"{len(common)} steps"
        others = f"{len(differ)} with other scores, from {differ[0]}" if differ else recorded
        yield same(name, recorded, others)


def cost_claims(record: Record) -> dict[str, str]:
    """What a record says of the cost of its training and of the models on the way."""
    claimed, budget, curve = {}, record.budget, record.validation_curve
    if budget is not None:
        claimed["core time per seed"] = f"{budget.core_seconds:.3g} s"
        if budget.device_seconds is not None:
            claimed["device time per seed"] = f"{budget.device_seconds:.3g} s"
        if budget.rate is not None:
            claimed["steps of the budget"] = f"{budget.rate:.3g} steps per second"
    if curve is not None:
        claimed["validation"] = (
            f"{counted(len(curve.steps), 'point')}, {curve.share:.1%} of the time"
        )
    return claimed
