"""Budgets: the steps that a training budget pays for, fixed once, and the track of a run."""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..api.budget import Budget
from ..api.costs import BudgetReport
from ..api.errors import UsageError
from ..api.recipe import Recipe
from ..console import report
from ..devices import free_memory
from ..files import write_first
from ..training.checkpoints import other_code, unusable
from ..training.loop import Trained, Training
from ..training.optimizers.choice import with_whole_optimizer
from ..training.rate import ENDLESS, measure_rate
from ..training.resumption import Resumption
from ..training.schedules import fit_schedule, measuring_share
from .fixed_steps import FixedSteps, known_steps, steps_path
from .plan import Plan

#: The trial that measures the rate takes this share of the budget, within these seconds; more where
#: one chunk of steps takes longer.
TRIAL_SHARE, LEAST_TRIAL, MOST_TRIAL = 0.02, 0.2, 10.0

#: Prepares a training by a recipe.
MakeTraining = Callable[[Recipe], Training]


def fix_steps(plan: Plan, make_training: MakeTraining, resumption: Resumption) -> FixedSteps:
    """The steps of a training.

    Those of a budget are the plan's own, or those in a file beside the checkpoint, or they are
    measured now and written to it before training begins. The file is not used where nothing is to
    be resumed, or if other code wrote it. Raises CheckpointError if that code left a checkpoint
    too, whose steps would be lost. Processes that begin the same training at once take the same
    steps.
    """
    assert plan.recipe is not None
    if plan.fixed is not None:
        return plan.fixed
    asked = plan.spec.budget
    if asked is None:
        return FixedSteps(steps=plan.recipe.steps)
    path, code = steps_path(resumption.path), dict(resumption.code)
    if resumption.resume and path.exists():
        fixed = known_steps(path)
        if (fixed.asked, fixed.code) == (asked, code):
            return fixed
        if resumption.path.exists():
            raise unusable(resumption.path, other_code(fixed.code, code))
        path.unlink(missing_ok=True)
    if not resumption.resume:
        # New steps are another training, for which a checkpoint of the old one would be refused.
        for old in (resumption.path, path):
            old.unlink(missing_ok=True)
    budget = Budget.parse(asked)
    rate = _rate(plan.recipe, make_training, budget)
    fixed = FixedSteps(steps=steps_of(budget, rate), rate=rate, asked=asked, code=code)
    if not write_first(path, (fixed.model_dump_json() + "\n").encode()):
        # Another process began the same training meanwhile: both take the same steps.
        fixed = known_steps(path)
        if fixed.code != code:
            raise unusable(path, other_code(fixed.code, code))
    report(f"{plan.spec.model}: {budget} of {budget.kind} per seed: {fixed.steps:,} steps")
    return fixed


def steps_of(budget: Budget, rate: float) -> int:
    """The steps that a budget pays for at a rate per second, one at least."""
    return max(1, int(budget.seconds * rate))


def _rate(recipe: Recipe, make_training: MakeTraining, budget: Budget) -> float:
    """The steps per second of core or device time per seed, measured on a trial."""
    trial = make_training(recipe.model_copy(update={"steps": ENDLESS}))
    seconds = TRIAL_SHARE * budget.times(len(trial.members)).seconds
    rate = measure_rate(trial, min(max(seconds, LEAST_TRIAL), MOST_TRIAL))
    del trial
    free_memory()  # of a GPU, where the trial would lie beside the training that follows
    # Measuring for the adaptive schedule costs gradients too; how often depends on the steps.
    fitted = fit_schedule(recipe, steps_of(budget, rate))
    return rate / (1.0 + measuring_share(fitted))


def require_device(budget: str | None, device: torch.device) -> None:
    """Raise UsageError for a budget of core time on a GPU, or of device time on a CPU."""
    if budget is None:
        return
    asked = Budget.parse(budget)
    if asked.on_gpu != (device.type == "cuda"):
        here = asked._replace(on_gpu=not asked.on_gpu)
        raise UsageError(
            f"--budget {asked} is {asked.kind}; on --device {device.type} it is {here.kind}, "
            f"such as {here}"
        )


def budget_report(trained: Trained, fixed: FixedSteps) -> BudgetReport:
    """What training was asked to cost, and what one seed of the program cost."""
    count, clock = len(trained.states), trained.clock
    return BudgetReport(
        asked=fixed.asked,
        steps=fixed.steps,
        rate=fixed.rate,
        core_seconds=clock.core / count,
        wall_seconds=clock.wall / count,
        device_seconds=None if clock.device is None else clock.device / count,
    )


def track_of(plan: Plan) -> str | None:
    """The track of a run: its budget, or `paper` for the task's published recipe; None: open.

    A training that starts from given weights has no track, since they cost something too.
    """
    if plan.recipe is None or plan.spec.init is not None:
        return None
    return plan.spec.budget or ("paper" if _is_published(plan) else None)


def _is_published(plan: Plan) -> bool:
    """Whether the plan has the task's recipe `paper`, with the size that it sets, unchanged."""
    paper = plan.task.recipes.get("paper")
    if plan.spec.recipe != "paper" or paper is None:
        return False
    paper = with_whole_optimizer(paper)
    sizes = [(paper.model_args, plan.config), (paper.task_args, plan.task.config)]
    kept = [
        getattr(config, name, value) == value
        for args, config in sizes
        for name, value in args.items()
    ]
    return plan.recipe == paper and all(kept)
