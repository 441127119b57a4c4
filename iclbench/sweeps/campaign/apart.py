"""Seeds apart: each seed of a run in a process of its own, and one record of all of them.

The first seed's process measures the rate that a budget's steps follow from; the others take its
steps. The seeds' own records stay in a folder beside those of the campaign.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from ...api.costs import SCORES, BudgetReport, ValidationCurve
from ...api.errors import CheckpointError, RecordError, RunError
from ...api.record import Environment, Record, TrainingReport
from ...devices import environment, find_device
from ...precision import DTYPES, full_precision
from ...runs.exclusive import exclusive
from ...runs.fixed_steps import FixedSteps, known_steps, steps_path
from ...runs.models import Model, built_module
from ...runs.plan import Plan, resolve
from ...runs.ready_models import ReadyModels, with_move
from ...runs.run import evaluate_and_record, run_plans
from ...runs.settings import Settings
from ...runs.shift_records import add_shifts
from ...runs.store import RecordStore
from ...runs.training import checkpoint_path, training_code
from ...training.checkpoints import load_state, load_weights
from ...training.platforms import moved_names, with_moves

#: The folder of the seeds' records, in the output folder.
SEEDS = "seeds"
#: How long a seed waits until the first one's steps are fixed, in seconds.
PATIENCE = 900.0


def seed_plan(plan: Plan, seed: int) -> Plan:
    """The run of one of a plan's seeds."""
    request = plan.request.model_copy(update={"seeds": (seed,)})
    return replace(resolve(request), tuning=plan.tuning)


def seed_settings(settings: Settings) -> Settings:
    """The settings by which single seeds are run."""
    return replace(settings, out=settings.out / SEEDS)


def run_seed(plan: Plan, seed: int, settings: Settings, patience: float = PATIENCE) -> None:
    """Run one seed of a plan, for the steps of those that have a record.

    Where none has, the first seed measures its rate and the others wait for its steps. Raises
    RunError where they stay unknown for `patience` seconds.
    """
    settings, alone = seed_settings(settings), seed_plan(plan, seed)
    if plan.spec.budget is None:
        run_plans([alone], settings)
        return
    fixed = _steps_of_records(plan, RecordStore(settings.out))
    if fixed is None:
        if seed == plan.spec.seeds[0]:
            run_plans([alone], settings)
            return
        fixed = _fixed_by(seed_plan(plan, plan.spec.seeds[0]), settings, patience)
    run_plans([replace(alone, fixed=fixed)], settings)


def _steps_of_records(plan: Plan, store: RecordStore) -> FixedSteps | None:
    """The steps of the first seed that has a record; None where none has."""
    for seed in plan.spec.seeds:
        if fixed := FixedSteps.of(store.find(seed_plan(plan, seed).spec)):
            return fixed
    return None


def _fixed_by(first: Plan, settings: Settings, patience: float) -> FixedSteps:
    """The steps of the first seed, from its record, or from the file that its training writes."""
    store, path = RecordStore(settings.out), steps_path(checkpoint_path([first], settings.out))
    started = time.monotonic()
    while True:
        if fixed := FixedSteps.of(store.find(first.spec)):
            return fixed
        fixed = _fixed_steps(path)
        # The first seed replaces what another request or other code has left.
        if fixed and (fixed.asked, fixed.code) == (first.spec.budget, training_code([first])):
            return fixed
        if time.monotonic() - started >= patience:
            seed = first.spec.seeds[0]
            raise RunError(f"the steps of seed {seed} are not known yet; run it first")
        time.sleep(min(1.0, patience))


def _fixed_steps(path: Path) -> FixedSteps | None:
    """The steps in a file; None where it is not there yet, or went with the training's end."""
    try:
        return known_steps(path)
    except CheckpointError:
        return None


@exclusive()
def merge(plan: Plan, settings: Settings) -> Record:
    """Evaluate the models of all seeds together and write one record of them.

    Raises RecordError where a seed has no record, and RunError where one took other steps, as one
    does that diverged.
    """
    store = RecordStore(seed_settings(settings).out)
    records, models = [], []
    for seed in plan.spec.seeds:
        record = store.find(seed_plan(plan, seed).spec)
        if record is None or record.weights_file is None:
            raise RecordError(f"seed {seed} of {plan.spec.model} has no record to merge")
        records.append(record)
        models.append(_model(plan, seed, record, store))
    # A seed that diverged alone ended there; beside others it would have gone on unchanged.
    steps = {r.training.steps for r in records if r.training and r.seeds[0].diverged_at is None}
    if len(steps) > 1:
        raise RunError(f"the seeds of {plan.spec.model} took different numbers of steps: {steps}")
    ready = ReadyModels(
        models,
        max(records, key=_steps_taken).operations,
        _training(records, environment(find_device(settings.device))),
        _budget([r.budget for r in records if r.budget]),
        _curve([r.validation_curve for r in records if r.validation_curve]),
    )
    device, grading = find_device(settings.device), plan.prepare_grading()
    with full_precision(DTYPES[plan.spec.dtype]):
        record = evaluate_and_record(plan, ready, grading, settings, device)
    RecordStore(settings.out).write(record)
    return add_shifts(plan, record, settings, device)


def _steps_taken(record: Record) -> int:
    """The steps that a seed took; one that diverged took fewer."""
    return record.training.steps if record.training else 0


def _model(plan: Plan, seed: int, record: Record, store: RecordStore) -> Model:
    """The trained model of a seed's record."""
    assert record.weights_file is not None
    (state,) = load_weights(store.objects.sound_path(record.weights_file)).states.values()
    with full_precision(DTYPES[plan.spec.dtype]):
        module = built_module(plan, "given")
    load_state(module, state, f"seed {seed}")
    return Model(seed, module, record.seeds[0].diverged_at)


def _training(records: Sequence[Record], here: Environment) -> TrainingReport:
    """One report of all trainings: times add up, curves stand side by side.

    The longest gives the steps; a seed that diverged before its end has no losses after that. The
    note says where one was trained on another platform than `here`.
    """
    reports = [with_move(r.training, r.environment, here) for r in records if r.training]
    moved = [name for report in reports for name in moved_names(report.note)]
    first = max(reports, key=lambda report: report.steps)
    seconds = sum(report.seconds for report in reports)
    curves = zip(*(_losses_at(first.curve_steps, report) for report in reports), strict=True)
    return first.model_copy(
        update={
            "seconds": seconds,
            "steps_per_second": first.steps * len(reports) / seconds if seconds else 0.0,
            "curve": [[loss for losses in point for loss in losses] for point in curves],
            "note": with_moves("each seed was trained in its own process", moved),
        }
    )


def _losses_at(steps: Sequence[int], report: TrainingReport) -> list[list[float | None]]:
    """A seed's losses at the points of another's curve; None where its own ended before."""
    known = dict(zip(report.curve_steps, report.curve, strict=True))
    return [known.get(step, [None]) for step in steps]


def _budget(reports: Sequence[BudgetReport]) -> BudgetReport | None:
    """What one seed cost on average; the first one's rate fixed the steps of all."""
    if not reports:
        return None
    on_device = [report.device_seconds for report in reports if report.device_seconds is not None]
    return reports[0].model_copy(
        update={
            "core_seconds": fmean(report.core_seconds for report in reports),
            "wall_seconds": fmean(report.wall_seconds for report in reports),
            "device_seconds": fmean(on_device) if on_device else None,
        }
    )


def _curve(curves: Sequence[ValidationCurve]) -> ValidationCurve | None:
    """The points that all seeds have; which ones a seed leaves out depends on its time.

    A seed that diverged has no scores after its last point.
    """
    if not curves:
        return None
    end = max(max(curve.steps, default=0) for curve in curves)
    whole = [curve for curve in curves if end in curve.steps] or list(curves)
    first = whole[0]
    steps = [step for step in first.steps if all(step in curve.steps for curve in whole)]
    indices = [[_index_of(curve, step) for step in steps] for curve in curves]
    scores: dict[str, Any] = {
        name: [
            [None if i is None else by_seed[i] for i in of_curve]
            for curve, of_curve in zip(curves, indices, strict=True)
            for by_seed in getattr(curve, name)
        ]
        for name in SCORES
    }
    times = [[curve.seconds[curve.steps.index(step)] for step in steps] for curve in whole]
    return first.model_copy(
        update={
            **scores,
            "steps": steps,
            "seconds": [fmean(column) for column in zip(*times, strict=True)],
            "operations": [first.operations[first.steps.index(step)] for step in steps],
            "share": fmean(curve.share for curve in curves),
        }
    )


def _index_of(curve: ValidationCurve, step: int) -> int | None:
    return curve.steps.index(step) if step in curve.steps else None
