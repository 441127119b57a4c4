"""run_plans(plans) → records: one page, from the plan to the record.

resolve → reuse an existing record → prepare → train or load → evaluate → summarize → record → store
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import torch

from ..api.errors import PLUGIN_FAILURES, IclbenchError, Interrupted
from ..api.record import MAIN, Record
from ..console import report as say
from ..devices import environment, find_device
from ..files import require_writable
from ..plugins import host
from ..precision import DTYPES, full_precision
from ..training.interruption import deferred
from .asked_answers import prepare_asking, write_answers
from .budget import require_device, track_of
from .exclusive import alone, exclusive
from .grading import Grading
from .measure import analyse, axes_of, measure
from .models import saved_weights
from .plan import Plan
from .preflight import require_sound_prompts
from .ready_models import ReadyModels
from .report import (
    date_now,
    evaluation,
    grader_report,
    is_chance,
    plugin_references,
    ranking,
    seed_reports,
)
from .reuse import existing_records
from .settings import Settings
from .shift_records import add_shifts
from .shifts import asked_shifts
from .state_size import state_sizes
from .statistics import summarize_run
from .store import RecordStore, require_results
from .training import (
    checkpoint_path,
    keep_trained,
    packages_of,
    remove_checkpoints,
    train_or_load,
)


@exclusive()
def run_plans(plans: Sequence[Plan], settings: Settings) -> list[Record]:
    """The records of plans that share a `train_key`, in order; trains them as one program.

    Raises UsageError within another run of this process, and CheckpointError beside another process
    that trains them.
    """
    device = find_device(settings.device)
    require_device(plans[0].spec.budget, device)
    for plan in plans:
        asked_shifts(plan)
    records = _existing(plans, settings)
    without = {plan.spec.id: plan for plan in plans if plan.spec.id not in records}
    # Sorted, so that a group finds its checkpoint in whatever order it is asked for.
    missing = [without[run_id] for run_id in sorted(without)]
    if missing:
        require_results(settings.out)
        require_writable(settings.out)
        trains = missing[0].recipe is not None
        with alone(checkpoint_path(missing, settings.out)) if trains else nullcontext():
            # Another process may have made some since.
            records |= _existing(missing, settings) if trains else {}
            missing = [plan for plan in missing if plan.spec.id not in records]
            records |= _make(missing, settings, device) if missing else {}
    return _with_shifts(plans, records, settings, device)


def _existing(plans: Sequence[Plan], settings: Settings) -> dict[str, Record]:
    """The records that these plans have, by their ids; none where they are to be run again."""
    return {} if settings.force else existing_records(plans, RecordStore(settings.out))


def _with_shifts(
    plans: Sequence[Plan], records: Mapping[str, Record], settings: Settings, device: torch.device
) -> list[Record]:
    """The plans' records with the shifts that each asks for; raises the first plan's error last."""
    whole: list[Record] = []
    errors: list[BaseException] = []
    for plan in plans:
        try:
            whole.append(add_shifts(plan, records[plan.spec.id], settings, device))
        except PLUGIN_FAILURES as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return whole


def _make(plans: Sequence[Plan], settings: Settings, device: torch.device) -> dict[str, Record]:
    """The records of plans that have none, by their ids; the hooks hear of each.

    Raises the first plan's error after all others have their records.
    """
    # Refuse a grader without its key, or unsuitable prompts, before any time is spent.
    gradings = [plan.prepare_grading() for plan in plans]
    require_sound_prompts(plans[0])
    prepare_asking(plans[0])
    for line in dict.fromkeys(line for plan in plans for line in plan.remarks):
        say(line)
    for plan in plans:
        host().notify("iclbench_run_started", spec=plan.spec)
    records: dict[str, Record] = {}
    errors: dict[str, BaseException] = {}
    try:
        for record in _records(plans, gradings, settings, device, errors):
            records[record.id] = record
            host().notify("iclbench_run_finished", spec=record.spec, record=record)
        if errors:
            raise next(iter(errors.values()))
    except (*PLUGIN_FAILURES, KeyboardInterrupt) as error:
        for plan in plans:
            if plan.spec.id not in records:
                run_error = errors.get(plan.spec.id, error)
                host().notify("iclbench_run_failed", spec=plan.spec, error=run_error)
        raise
    return records


def _records(
    plans: Sequence[Plan],
    gradings: Sequence[Grading | None],
    settings: Settings,
    device: torch.device,
    errors: dict[str, BaseException],
) -> Iterator[Record]:
    """Train or load the models of all plans, evaluate them, and only then write their records.

    What is trained together has one checkpoint, which is found by the plans that have no record: a
    process killed between two evaluations finds it again. A plan that fails takes no other's
    record with it: its error goes to `errors`, by its run's id, and its models are kept.
    """
    measured: list[tuple[Plan, ReadyModels, Record]] = []
    checkpoints: set[Path] = set()
    with full_precision(DTYPES[plans[0].spec.dtype]):
        ready = train_or_load(plans, settings, device)
        for plan, models, grading in zip(plans, ready, gradings, strict=True):
            checkpoints |= {models.checkpoint} if models.checkpoint else set()
            try:
                record = evaluate_and_record(plan, models, grading, settings, device)
                measured.append((plan, models, record))
            except PLUGIN_FAILURES as error:
                errors[plan.spec.id] = error
                if len(plans) > 1:  # the next evaluation needs that memory
                    traceback.clear_frames(error.__traceback__)
                keep_trained(plan, models, settings.out, device)
    # A group with some records is never resumed as that group: a signal waits for all of them.
    with deferred() as signal_received:
        written = list(_written(measured, settings, device, errors))
        remove_checkpoints(checkpoints, plans, settings.out, errors)
        number = signal_received()
    yield from written
    if number is not None:
        raise Interrupted(number, "stopped after its records were written")


def _written(
    measured: Sequence[tuple[Plan, ReadyModels, Record]],
    settings: Settings,
    device: torch.device,
    errors: dict[str, BaseException],
) -> Iterator[Record]:
    """The records that could be written; of a plan whose record can't be, the models are kept.

    Those of several plans are kept before, so that a process that is killed between two records
    loses no training. `remove_checkpoints` removes them.
    """
    store, several = RecordStore(settings.out), len(measured) > 1
    for plan, models, _record in measured if several else ():
        keep_trained(plan, models, settings.out, device)
    for plan, models, record in measured:
        try:
            placed = _placed(record, store, settings)
        except (OSError, IclbenchError) as error:
            errors[record.id] = error
            if not several:
                keep_trained(plan, models, settings.out, device)
        else:
            yield placed


def _placed(record: Record, store: RecordStore, settings: Settings) -> Record:
    """The record that is in its place now: this one, or that which another process has made."""
    earlier = None if settings.force else store.find(record.spec)
    if earlier is None:
        store.write(record)
        return record
    name = f"{record.spec.model} on {record.spec.task}"
    say(f"{name}: another process has written its record meanwhile, which stays")
    return earlier


def evaluate_and_record(
    plan: Plan,
    ready: ReadyModels,
    grading: Grading | None,
    settings: Settings,
    device: torch.device,
) -> Record:
    """Evaluate the models of a plan and write the files of its record, which is returned."""
    models = ready.models
    folder = settings.out / "graders" if grading else None
    measured = measure(plan, models, device, settings.eval_batch, grader=grading, folder=folder)
    axes = axes_of(plan, models[0])
    summary = summarize_run(measured.values, measured.floor_values, axes, plan.kinds)
    store, spec = RecordStore(settings.out), plan.spec
    weights = saved_weights(plan, models)
    return Record(
        id=spec.id,
        spec=spec,
        command=plan.command(),
        ranking=ranking(plan),
        parameters=sum(p.numel() for p in models[0].module.parameters()),
        state_sizes=state_sizes(models[0].module, plan.task.signature.length),
        chance=is_chance(plan),
        seeds=seed_reports(models),
        evaluations={MAIN: evaluation(plan, measured, summary, store.objects)},
        weights=store.objects.write(weights, "safetensors") if weights else None,
        answers=write_answers(models, store.objects) if spec.origin == "asked" else None,
        training=ready.training,
        operations=ready.operations,
        validation_curve=ready.validation_curve,
        track=track_of(plan),
        budget=ready.budget,
        tuning=plan.tuning,
        analyses=analyse(plan, models, device, settings.eval_batch),
        grader=grader_report(grading, store.objects, spec.task) if grading else None,
        environment=environment(device, packages_of(plan)),
        plugins=plugin_references(plan.plugins),
        created=date_now(),
    ).sealed()
