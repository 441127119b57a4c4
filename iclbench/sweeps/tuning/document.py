"""The document of a search: every trial's score, the choice, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.errors import RunError
from ...api.record import Record
from ...api.tuning import (
    Trial,
    TuningCost,
    TuningDocument,
    best_trial,
    own_or_best,
    start_of,
    tuning_evaluation_seed,
    tuning_seeds,
)
from ...runs.arguments import given_arguments
from ...runs.report import ranking
from ...runs.store import RecordStore
from .planning import PlannedSearch
from .points import Point, own_point
from .settings import SearchSettings


def document_of(
    planned: PlannedSearch,
    store: RecordStore,
    failures: Mapping[int, str],
    search: SearchSettings,
) -> TuningDocument:
    """The document of a search whose trials have records in the store, or failed, by index.

    Raises RunError if no trial gives a score, and RecordError for a damaged record.
    """
    trials, records = [], []
    for index, trial in enumerate(planned.trials):
        record = store.find(trial.plan.spec) if trial.plan else None
        failure = failures.get(index, trial.failure)
        records += [record] if record else []
        trials.append(_trial(trial.point, record, failure))
    return _document(planned, trials, records, search)


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
    latest = max(records, key=lambda record: record.created, default=None)
    chosen = best_trial(tuple(trials), ranking(plan))
    if own_point(planned.space, plan) and latest is not None:
        is_fraction = ranking(plan).metric in plan.task.fractions
        prompts = latest.main.prompts if is_fraction else None
        chosen = own_or_best(tuple(trials), ranking(plan), prompts)
    if chosen is None or latest is None:
        reasons = [trial.failure for trial in trials if trial.failure]
        reason = reasons[0] if reasons else "their errors are not finite"
        raise RunError(f"no trial of {spec.model} on {spec.task} gave a score: {reason}")
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
