"""What a search for arguments would do: its trials, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.budget import Budget
from ..console import counted
from ..runs.plan import Plan
from ..sweeps.tuning.search import PlannedTrial
from .table import Cell, Column, Table


def planned_table(plan: Plan, trials: Sequence[PlannedTrial]) -> Table:
    """A line per trial: its arguments, and whether it has a record, is to run, or can't."""
    arguments = dict.fromkeys(name for trial in trials for name in trial.point.model_args)
    rows = []
    for trial in trials:
        recipe = trial.point.recipe_args
        rate = recipe["learning_rate"]
        rows.append(
            {
                "model": plan.spec.model,
                "task": plan.spec.task,
                "rate": Cell(f"{rate:g}", rate),
                **trial.point.model_args,
                "optimizer": recipe["optimizer"],
                "schedule": recipe["schedule"],
                "does": _does(trial),
            }
        )
    columns = (
        Column("model", extra=True),
        Column("task", extra=True),
        Column("rate", right=True),
        *(Column(name, right=True, importance=4) for name in arguments),
        Column("optimizer", importance=2),
        Column("schedule", importance=3),
        Column("does", fit="wrap", importance=1),
    )
    title = (
        f"{plan.spec.model} on {plan.spec.task}, {counted(len(trials), 'trial')}: {_cost(trials)}"
    )
    note = "Nothing has been run. To start, leave out --dry-run."
    return Table(columns, rows, title=title, notes=[note])


def _does(trial: PlannedTrial) -> str:
    if trial.plan is None:
        return f"can't run: {trial.failure}"
    if trial.exists:
        return "record exists"
    spec = trial.plan.spec
    seeds = counted(len(spec.seeds), "seed")
    if spec.budget is not None:
        return f"train {seeds}, {spec.budget} each"
    assert trial.plan.recipe is not None
    return f"train {seeds}, {counted(trial.plan.recipe.steps, 'step')}"


def _cost(trials: Sequence[PlannedTrial]) -> str:
    """How many are left, and their budgets together."""
    left = [trial.plan for trial in trials if trial.plan is not None and trial.is_missing]
    budgets = [
        Budget.parse(plan.spec.budget).times(len(plan.spec.seeds))
        for plan in left
        if plan.spec.budget
    ]
    if not budgets:
        return f"{len(left)} to run"
    total = budgets[0]._replace(seconds=sum(budget.seconds for budget in budgets))
    return f"{len(left)} to run, {total} of {total.kind} in all"
