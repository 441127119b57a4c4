"""What a run would do, on one page: each run with its steps, and the time that it will take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api.grader import Completion
from ..api.spec import ACTIONS
from ..console import counted
from ..leaderboards.arguments import argument_pairs
from ..runs.reuse import Standing, standing
from ..runs.shifts import asked_shifts
from ..runs.store import RecordStore
from ..runs.suites import in_words, summed
from ..runs.training import checkpoint_path
from .estimate import Estimate, estimate
from .progress import ProgressDisplay
from .table import Cell, Column, Table
from .views import duration

if TYPE_CHECKING:
    from ..runs.plan import Plan
    from ..runs.settings import Settings

#: Seconds after which no further rate is measured.
MEASURING = 60.0
NOT_MEASURED = Estimate(None, None, None)


def estimates(plans: Sequence[Plan], settings: Settings, *, tunes: bool) -> dict[str, Estimate]:
    """The estimates of the plans that train and have no record, by the run's id.

    With `tunes`, plans are tuned first, so that records of the untuned ones don't count. Slow
    trainings may use up the time for measuring; those that follow then have an empty estimate.
    """
    trained = [plan for plan in plans if trains(plan, settings, tunes=tunes)]
    measured = {}
    until = time.monotonic() + MEASURING
    with ProgressDisplay(len(trained)) as display:
        for number, plan in enumerate(trained, start=1):
            if time.monotonic() > until and plan.spec.budget is None:
                measured[plan.spec.id] = NOT_MEASURED
                continue
            display.begin(number, f"{plan.spec.model} on {plan.spec.task}", "measuring the rate")
            measured[plan.spec.id] = estimate(plan, settings)
    return measured


def page(plans: Sequence[Plan], settings: Settings, tuning: str | None) -> Table:
    """The page, with the resolved spec of each run in its JSON; `tuning` is what is tuned first."""
    tunes = tuning is not None
    measured = estimates(plans, settings, tunes=tunes)
    rows = [_row(plan, measured.get(plan.spec.id), settings, tunes) for plan in plans]
    columns = (
        Column("model", fit="shorten"),
        Column("task", fit="shorten"),
        Column("does"),
        Column("seeds", right=True, importance=3),
        Column("steps", right=True, importance=4),
        Column("time", right=True),
        Column("steps/s", right=True, importance=2),
        Column("arguments", fit="wrap", importance=5),
        Column("id", extra=True),
        Column("spec", extra=True, fit="wrap"),
    )
    title = f"{counted(len(plans), 'run')} into {settings.out}"
    return Table(columns, rows, title=title, notes=_notes(plans, measured, tuning))


def total(measured: Mapping[str, Estimate]) -> str:
    """The time of all trainings, and the budgets of those that have one."""
    seconds = [e.seconds for e in measured.values() if e.seconds is not None]
    text = duration(sum(seconds))
    about = "" if text.startswith("under") else "about "
    parts = [f"{about}{text}"] if seconds else []
    budgets = summed(e.budget for e in measured.values() if e.budget is not None)
    parts += [in_words(budget) for budget in budgets]
    missing = sum(one is NOT_MEASURED for one in measured.values())
    parts += [f"{counted(missing, 'training')} of unknown time"] if missing else []
    return " and ".join(parts)


def trains(plan: Plan, settings: Settings, *, tunes: bool) -> bool:
    """Whether running a plan trains a model."""
    return plan.recipe is not None and standing_of(plan, settings, tunes=tunes).is_missing


def damaged(plans: Sequence[Plan], settings: Settings, *, tunes: bool) -> list[str]:
    """A line for each plan that can't be run since its record is damaged."""
    return [line for plan in plans if (line := standing_of(plan, settings, tunes=tunes).problem)]


def standing_of(plan: Plan, settings: Settings, *, tunes: bool) -> Standing:
    """How the plan's record stands.

    It counts as missing with --force, and with `tunes`, since the tuned run has another record.
    """
    if settings.force or (tunes and plan.recipe is not None):
        return Standing("missing")
    return standing(RecordStore(settings.out), plan.spec, asked_shifts(plan))


def action(plan: Plan, settings: Settings, fresh: str, *, tunes: bool) -> str:
    """What a run does: `fresh`, unless there is a record or a checkpoint."""
    stands = standing_of(plan, settings, tunes=tunes)
    match stands.state:
        case "whole":
            return "record exists"
        case "damaged":
            return "record is damaged"
        case "incomplete":
            return f"adds {counted(len(stands.missing_shifts), 'shift')}"
    if tunes or plan.recipe is None or not settings.resume:
        return fresh
    has_checkpoint = checkpoint_path([plan], settings.out).exists()
    return f"{fresh} from its checkpoint" if has_checkpoint else fresh


def _row(plan: Plan, expected: Estimate | None, settings: Settings, tunes: bool) -> dict[str, Any]:
    spec, request = plan.spec, plan.request
    row: dict[str, Any] = {
        "model": spec.model,
        "task": spec.task,
        "does": action(plan, settings, ACTIONS[spec.origin], tunes=tunes),
        "arguments": argument_pairs(
            {**request.model_args, **request.task_args, **request.recipe_args}
        ),
        "id": spec.id,
        "spec": spec.model_dump(mode="json"),
    }
    if plan.recipe is not None:
        row["seeds"] = len(spec.seeds)
    if expected is not None and expected.steps is not None:
        row["steps"] = Cell(f"{expected.steps:,}", expected.steps)
        row["steps/s"] = Cell(f"{expected.rate:.3g}", expected.rate)
        row["time"] = Cell(duration(expected.seconds or 0.0), expected.seconds)
    elif expected is not None and expected.budget is not None:
        row["time"] = in_words(expected.budget)
    return row


def _notes(
    plans: Sequence[Plan], measured: Mapping[str, Estimate], tuning: str | None
) -> list[str]:
    notes = [] if tuning is None else [f"tuning first: {tuning}."]
    if measured:
        timed = any(e.seconds is not None for e in measured.values())
        notes.append(f"training: {total(measured)}, not counting evaluation.")
        notes += ["Each rate was measured for a second on this machine."] * timed
        if NOT_MEASURED in measured.values():
            notes.append(
                f"Measured for {MEASURING:.0f} s; for the other times, ask for fewer runs."
            )
    notes += dict.fromkeys(f"{line}." for plan in plans for line in plan.remarks)
    notes += [_grading(plan) for plan in plans if plan.grader is not None]
    return [*notes, "Nothing has been run. To start, leave out --dry-run."]


def _grading(plan: Plan) -> str:
    """How many endings are graded, and a lower bound of the cost, as their texts are unknown."""
    assert plan.grader is not None
    count = plan.completions()
    least = plan.grader().estimate([Completion("", "")] * count)
    cost = "at an unknown cost" if least is None else f"for at least {least:.4f} USD"
    return f"grade about {count} endings with {plan.spec.grader}, " + (
        cost if least != 0 else "free"
    )
