"""The trials of a search for arguments: those that it would run, and those that it has run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..api.tuning import SearchSpace, Trial, TuningDocument, best_trial
from ..console import counted
from ..runs.suites import budgets_of, in_words
from ..sweeps.tuning.planning import PlannedSearch, PlannedTrial
from .table import Cell, Column, Table
from .views import duration


def planned_table(name: str, planned: PlannedSearch) -> Table:
    """A line per trial: its arguments, and whether it has a record, is to run, or can't.

    `name` says whose they are: the model and its board.
    """
    spec, trials = planned.plan.spec, planned.trials
    arguments = _arguments(trial.point.model_args for trial in trials)
    rows = [
        _row(spec.model, spec.task, trial.point.recipe_args, trial.point.model_args)
        | {"does": _does(trial)}
        for trial in trials
    ]
    columns = (*_columns(arguments), Column("does", fit="wrap", importance=1))
    title = f"{name}, {counted(len(trials), 'trial')}: {_cost(trials)}"
    note = "Nothing has been run. To start, leave out --dry-run."
    tried = [(trial.point.model_args, trial.point.recipe_args) for trial in trials]
    return Table(columns, rows, title=title, notes=[*_untried(planned.space, tried), note])


def finished_table(name: str, document: TuningDocument, notes: Sequence[str]) -> Table:
    """A line per trial, best first: its score and arguments. The notes say which was chosen."""
    ordered = sorted(
        document.trials, key=lambda trial: document.ranking.goodness(trial.score), reverse=True
    )
    rows = [
        _row(document.model, document.task, trial.recipe_args, trial.model_args)
        | {
            "score": Cell(_score(trial, document), trial.score),
            "chosen": trial is document.best,
            "steps": trial.failure or trial.steps,
        }
        for trial in ordered
    ]
    title = f"{name}, {counted(len(rows), 'trial')}, "
    cost = document.cost
    seconds, kind = cost.core_seconds, "core"
    if cost.device_seconds is not None:
        seconds, kind = cost.device_seconds, "device"
    title += f"{duration(seconds)} of {kind} time"
    columns = _finished_columns(
        document.ranking.statistic, _arguments(t.model_args for t in ordered)
    )
    tried = [(trial.model_args, trial.recipe_args) for trial in ordered]
    notes = [_choice(document), *_untried(document.space, tried), *notes]
    return Table(columns, rows, title=title, notes=notes)


def _score(trial: Trial, document: TuningDocument) -> str:
    text = "" if trial.score is None else f"{trial.score:.4g}"
    return f"{text} *" if trial is document.best else text


def _choice(document: TuningDocument) -> str:
    """Which trial was chosen, and why it need not be the one with the best score."""
    best = best_trial(document.trials, document.ranking)
    if best == document.chosen:
        return "* chosen: the best score."
    return (
        "* chosen: the recipe's own settings. The best score is hardly better, and trials are so "
        "short that it may be luck."
    )


def expected_table(trials: Iterable[PlannedTrial]) -> Table:
    """`finished_table` before its trials have run: its columns."""
    arguments = _arguments(trial.point.model_args for trial in trials)
    return Table(_finished_columns("score", arguments), [])


def _untried(
    space: SearchSpace, trials: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> list[str]:
    """A note on values of the space that no trial has, if there are any.

    Trials of one program share a shape: they differ in learning rate and initial scale alone.
    """
    values = {
        **space.model_args,
        "optimizer": tuple(choice.name for choice in space.optimizers),
        "schedule": space.schedules,
    }
    tried = [{name: {**a, **b}[name] for name in values} for a, b in trials]
    untried = {
        name: [value for value in choices if value not in [one[name] for one in tried]]
        for name, choices in values.items()
    }
    listed = "; ".join(
        f"{name}={', '.join(map(str, left))}" for name, left in untried.items() if left
    )
    if not listed:
        return []
    shapes = len({repr(one) for one in tried})
    return [
        f"Not tried: {listed}. {counted(len(tried), 'trial')} have {counted(shapes, 'shape')} "
        "(up to four share one); to try more, raise --trials."
    ]


def _arguments(of_trials: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of the models' arguments that are searched."""
    return list(dict.fromkeys(name for arguments in of_trials for name in arguments))


def _row(
    model: str, task: str, recipe_args: Mapping[str, Any], model_args: Mapping[str, Any]
) -> dict[str, Any]:
    rate = recipe_args["learning_rate"]
    return {
        "model": model,
        "task": task,
        "rate": Cell(f"{rate:g}", rate),
        **model_args,
        "optimizer": recipe_args["optimizer"],
        "schedule": recipe_args["schedule"],
    }


def _columns(arguments: Iterable[str], *first: Column) -> tuple[Column, ...]:
    return (
        Column("model", extra=True),
        Column("task", extra=True),
        *first,
        Column("rate", right=True),
        *(Column(name, right=True, importance=4) for name in arguments),
        Column("optimizer", importance=2),
        Column("schedule", importance=3),
    )


def _finished_columns(statistic: str, arguments: Iterable[str]) -> tuple[Column, ...]:
    score = Column("score", right=True, label=statistic)
    columns = _columns(arguments, score)
    return (*columns, Column("steps", fit="wrap", importance=1), Column("chosen", extra=True))


def _does(trial: PlannedTrial) -> str:
    if trial.plan is None:
        return f"can't run: {trial.failure}"
    if trial.failure is not None:
        return f"can't be used: {trial.failure}"
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
    costs = "".join(f", {in_words(budget)} in all" for budget in budgets_of(left))
    return f"{len(left)} to run{costs}"
