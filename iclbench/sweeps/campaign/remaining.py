"""What runs and sweeps of a campaign still take: their records, and the hours of their budgets."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.budget import Budget
from ...api.errors import CheckpointError
from ...runs.plan import Plan
from ...runs.reuse import Standing, standing
from ...runs.settings import Settings
from ...runs.shifts import asked_shifts
from ...runs.store import RecordStore
from ...runs.training import checkpoint_path
from ...training.checkpoints import Checkpoint
from ..cells import Cells, by_reason, runs_of
from ..files import SweepFile, stages_of
from ..tuning.trials import trial_budget
from .work import TrainRun


def trained_by_steps(plans: Sequence[Plan]) -> int:
    """How many of the plans train for given steps, not for a budget."""
    return sum(plan.recipe is not None and not plan.spec.budget for plan in plans)


def standing_in(plan: Plan, stores: Sequence[RecordStore]) -> Standing:
    """How the plan's record stands: whole if it is in one store, else as in that of its runs.

    Where that has none, one in another store may lack shifts only.
    """
    standings = [standing(store, plan.spec, asked_shifts(plan)) for store in stores]
    kept = [stands for stands in standings if stands.is_whole]
    if standings[0].is_missing:
        kept += [stands for stands in standings if stands.state == "incomplete"]
    return kept[0] if kept else standings[0]


def is_whole(file: SweepFile, store: RecordStore) -> bool:
    """Whether every run of a sweep has a record in the store."""
    plans, waiting, failures = plans_of(file, store)
    return not waiting and not failures and all(standing_in(p, [store]).is_whole for p in plans)


def plans_of(file: SweepFile, store: RecordStore) -> tuple[list[Plan], int, list[str]]:
    """The plans of a sweep, how many runs wait for the weights of others, and what can't run."""
    cells = Cells(file, store)
    for grids in stages_of(file):
        cells.resolve(grids)
    plans = [cells.plan(cell) for cell in cells.in_order()]
    return plans, runs_of(cells.waiting), by_reason(cells.failures)


def share_left(plan: Plan, settings: Settings) -> float:
    """The part of a training's steps that its checkpoint lacks; 1 without one that can be read."""
    path = checkpoint_path([plan], settings.out)
    if plan.recipe is None or not settings.resume or not path.exists():
        return 1.0
    try:
        values = Checkpoint.load_values(path)
    except CheckpointError:
        return 1.0
    if "kept" in values:  # trained models that are still to be evaluated
        return 0.0
    return max(1.0 - int(values.get("step", 0)) / max(int(values["layout"]["steps"]), 1), 0.0)


def seconds_of(plan: Plan) -> float:
    """What the plan's budget is; 0 without one."""
    if plan.recipe is None or plan.spec.budget is None:
        return 0.0
    return float(Budget.parse(plan.spec.budget).times(len(plan.spec.seeds)).seconds)


def seconds_of_trials(work: TrainRun) -> float:
    """What the budgets of the trials take that have no record yet; 0 without a budget."""
    budget = work.plan.spec.budget
    return 0.0 if budget is None else work.trials * Budget.parse(trial_budget(budget)).seconds
