"""Searching: run the trials of a tuning, those that share a program together, and choose the best.

Every trial is a run with a record of its own, in the folder `tuning` of the output folder. So a
search that is repeated continues, and one that has ended gives the same document again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ...api.errors import PLUGIN_FAILURES, RecordError, RunError, UsageError, reason_of
from ...api.executor import Executor, JobListener
from ...api.record import Record
from ...api.spec import RunSpec
from ...api.tuning import (
    SHARE,
    SearchSpace,
    Trial,
    TuningCost,
    TuningDocument,
    best_trial,
    own_or_best,
    start_of,
    tuning_evaluation_seed,
    tuning_seeds,
)
from ...console import Reporter, counted
from ...devices import require_devices
from ...runs.arguments import given_arguments
from ...runs.exclusive import alone
from ...runs.plan import Plan, resolve
from ...runs.report import ranking
from ...runs.reuse import standing
from ...runs.settings import Settings
from ...runs.statistics import GRADE
from ...runs.store import RecordStore
from ...runs.tuned import write_tuning
from ..jobs import job_of, request_of, run_job
from ..programs import make_executor
from .settings import SearchSettings
from .space import Point, own_point, points_of, search_space
from .trials import trial_budget

#: The folder of the trials' records, in the output folder.
TRIALS_FOLDER = "tuning"
#: The most prompts that a trial is evaluated on.
MOST_PROMPTS = 1024
#: A trial is graded only where a grade ranks it: grading costs.
UNGRADED: Mapping[str, Any] = {"grader": None, "grader_args": {}, "grader_budget": None}


class PlannedTrial(NamedTuple):
    """A trial: its arguments, its run, whether that has a record, and why it gives no score."""

    point: Point
    plan: Plan | None
    exists: bool
    failure: str | None

    @property
    def is_missing(self) -> bool:
        """Whether it is still to be run."""
        return self.plan is not None and not self.exists


class PlannedSearch(NamedTuple):
    """The trials of a search for the arguments of a plan, and the space they are drawn from."""

    plan: Plan
    space: SearchSpace
    trials: list[PlannedTrial]

    @property
    def missing(self) -> int:
        """How many trials have no record yet; those that can't run are not counted."""
        return sum(trial.is_missing for trial in self.trials)


def planned_search(plan: Plan, settings: Settings, search: SearchSettings) -> PlannedSearch:
    """The search that `tune` would make; raises UsageError as `tune` does."""
    if plan.request.init is not None and None not in plan.states:
        raise UsageError(
            "--init: these weights are of several seeds, and a trial has a seed of its own: give "
            "those of one seed"
        )
    space = search_space(plan, search.space)
    points = points_of(space, plan, search.trials, search.search_seed)
    store = RecordStore(settings.out / TRIALS_FOLDER)
    return PlannedSearch(
        plan, space, [_planned(plan, p, search.tuning_seeds, store) for p in points]
    )


def _planned(plan: Plan, point: Point, seeds: int, store: RecordStore) -> PlannedTrial:
    try:
        trial = resolve(_request(plan, point, seeds))
    except PLUGIN_FAILURES as error:
        return PlannedTrial(point, None, False, reason_of(error))
    stands = standing(store, trial.spec)
    return PlannedTrial(point, trial, not stands.to_run, stands.problem or None)


def tune(
    plan: Plan,
    settings: Settings,
    search: SearchSettings | None = None,
    report: Reporter = lambda line: None,
    listener: JobListener | None = None,
) -> TuningDocument:
    """Search for the arguments of a plan, on prompts and seeds that its board doesn't use.

    `report` gets a line per finished program of trials, and `listener` what the executor tells.

    Raises UsageError for a plan that trains nothing and for a device that can't be used, and
    RunError if no trial gives a score.
    """
    search = search or SearchSettings()
    return run_search(planned_search(plan, settings, search), settings, search, report, listener)


def run_search(
    planned: PlannedSearch,
    settings: Settings,
    search: SearchSettings,
    report: Reporter,
    listener: JobListener | None = None,
) -> TuningDocument:
    """Run the missing trials of a search that these settings planned; see `tune`.

    Raises CheckpointError beside another process that does: each would miss the other's trials.
    """
    with alone(settings.out / TRIALS_FOLDER / f"search-{planned.plan.spec.id}"):
        failures = _run(planned.trials, settings, search, report, listener)
    store = RecordStore(settings.out / TRIALS_FOLDER)
    trials, records = [], []
    for index, trial in enumerate(planned.trials):
        record, failure = None, failures.get(index, trial.failure)
        try:
            record = store.find(trial.plan.spec) if trial.plan else None
        except RecordError as error:  # a damaged one
            failure = str(error)
        records += [record] if record else []
        trials.append(_trial(trial.point, record, failure))
    return _document(planned, trials, records, search)


def tune_and_write(
    plan: Plan,
    settings: Settings,
    search: SearchSettings,
    report: Reporter,
    listener: JobListener | None = None,
) -> tuple[TuningDocument, Path]:
    """Search as `tune` does, and write the tuning to the output folder; returns its path too."""
    document = tune(plan, settings, search, report, listener)
    return document, write_tuning(settings.out, document)


def executor_of(search: SearchSettings, settings: Settings) -> tuple[Executor, int]:
    """What runs the trials, and how many workers it has.

    Raises UsageError for a device that they can't use.
    """
    executor = make_executor(search.executor, search.executor_args, settings.out / TRIALS_FOLDER)
    workers = search.workers or executor.workers
    require_devices(settings.device, workers, remote=executor.remote)
    return executor, workers


def _request(plan: Plan, point: Point, seeds: int) -> RunSpec:
    """The run of a trial."""
    request, recipe = plan.request, plan.recipe
    assert recipe is not None
    recipe_args = {**request.recipe_args, **point.recipe_args}
    if request.budget is None:
        recipe_args["steps"] = max(1, round(SHARE * recipe.steps))
        recipe_args["schedule_steps"] = recipe.schedule_steps or recipe.steps
    return request.model_copy(
        update={
            "model_args": {**request.model_args, **point.model_args},
            "recipe_args": recipe_args,
            "budget": None if request.budget is None else trial_budget(request.budget),
            "seeds": tuning_seeds(seeds),
            "eval_seed": tuning_evaluation_seed(request.eval_seed),
            "eval_prompts": min(request.eval_prompts, MOST_PROMPTS),
            "metrics": (),
            "shift": (),
            **({} if plan.task.primary.metric.startswith(GRADE) else UNGRADED),
        }
    )


def _run(
    trials: list[PlannedTrial],
    settings: Settings,
    search: SearchSettings,
    report: Reporter,
    listener: JobListener | None,
) -> dict[int, str]:
    """Run the trials, one program after another; returns why trials failed, by index."""
    plans = {index: trial.plan for index, trial in enumerate(trials) if trial.plan is not None}
    groups: dict[tuple[int, str], list[int]] = {}
    for index, plan in plans.items():
        groups.setdefault((trials[index].point.program, plan.train_key), []).append(index)
    # A queue may need hours for a program that finds all its records.
    members = [group for group in groups.values() if any(trials[i].is_missing for i in group)]
    trial_settings = replace(settings, out=settings.out / TRIALS_FOLDER)
    jobs = [
        job_of([request_of(plans[index].request) for index in group], trial_settings)
        for group in members
    ]
    failures: dict[int, str] = {}
    executor, workers = executor_of(search, settings)
    executor.listener = listener
    with closing(executor.map(run_job, jobs, workers)) as outcomes:
        for finished, (job, outcome) in enumerate(outcomes, start=1):
            group = members[job]
            is_error = isinstance(outcome, BaseException)
            reasons = [reason_of(outcome)] * len(group) if is_error else outcome
            failed = {i: r for i, r in zip(group, reasons, strict=True) if r is not None}
            failures |= failed
            state = f"{len(failed)} of {len(group)} failed" if failed else "done"
            report(
                f"[{finished}/{len(jobs)}] {counted(len(group), 'trial')} as one program: {state}"
            )
    return failures


def _trial(point: Point, record: Record | None, failure: str | None) -> Trial:
    score = None
    if record is not None:
        score = record.score
        # Its last weights may score well, but ten times the steps would diverge too.
        steps = [s.diverged_at for s in record.seeds if s.diverged_at is not None]
        score, failure = (None, f"diverged at step {min(steps)}") if steps else (score, None)
    return Trial(
        model_args=point.model_args,
        recipe_args=point.recipe_args,
        score=score,
        run=record.id if record else None,
        steps=record.training.steps if record and record.training else None,
        failure=failure,
    )


def _document(
    planned: PlannedSearch, trials: list[Trial], records: list[Record], search: SearchSettings
) -> TuningDocument:
    """The document; its date, device and cost are those of the trials, so it can be made again."""
    plan = planned.plan
    spec, request = plan.spec, plan.request
    # Only a space that holds the recipe's own settings begins with them.
    choose = own_or_best if own_point(planned.space, plan) else best_trial
    chosen = choose(tuple(trials), ranking(plan))
    if chosen is None:
        reasons = [trial.failure for trial in trials if trial.failure]
        reason = reasons[0] if reasons else "their errors are not finite"
        raise RunError(f"no trial of {spec.model} on {spec.task} gave a score: {reason}")
    latest = max(records, key=lambda record: record.created)
    return TuningDocument(
        model=spec.model,
        task=spec.task,
        task_version=spec.task_version,
        task_args=spec.task_args,
        dtype=spec.dtype,
        recipe=spec.recipe,
        start=start_of(spec),
        base_model_args=given_arguments(plan, "model_args"),
        base_recipe_args=given_arguments(plan, "recipe_args"),
        budget=spec.budget,
        ranking=ranking(plan),
        evaluation_seed=tuning_evaluation_seed(request.eval_seed),
        evaluation_prompts=latest.main.prompts,
        seeds=tuning_seeds(search.tuning_seeds),
        search_seed=search.search_seed,
        space=planned.space,
        trials=tuple(trials),
        chosen=chosen,
        cost=_cost(records),
        device=latest.environment.device,
        versions=latest.environment.versions,
        created=latest.created,
    )


def _cost(records: list[Record]) -> TuningCost:
    """The time that training all trials took."""
    spent = [(record.budget, len(record.seeds)) for record in records if record.budget]
    on_device = [b.device_seconds * n for b, n in spent if b.device_seconds is not None]
    return TuningCost(
        core_seconds=sum(b.core_seconds * n for b, n in spent),
        wall_seconds=sum(b.wall_seconds * n for b, n in spent),
        device_seconds=sum(on_device) if on_device else None,
    )
