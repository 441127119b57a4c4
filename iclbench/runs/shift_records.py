"""Adding evaluations under shift to a record that exists, without training anything again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from ..api.errors import RecordError, RunError, reason_of
from ..api.record import Record
from ..api.spec import RunSpec
from ..console import report
from ..devices import find_device
from ..files import path_of, require_writable
from ..precision import DTYPES, full_precision
from .exclusive import exclusive
from .facts import compare_spec, recompute
from .models import given_models
from .plan import Plan
from .settings import Settings
from .shifts import ALL, asked_shifts, measure_shifts, present_shifts, with_shifts
from .store import RecordStore, read_record, require_place


def _as_it_is_now(store: RecordStore, record: Record) -> Record:
    """The record with what was added to it since; raises RecordError if another replaced it."""
    now = store.find(record.spec)
    if now is None or (now.created, now.weights_file) != (record.created, record.weights_file):
        raise RecordError(
            f"{store.path(record.spec)}: it was replaced while it was evaluated; run this again"
        )
    return now


@exclusive()
def evaluate_shifts(
    path: str | Path,
    shifts: str | Sequence[str] = ALL,
    device: str = "auto",
    eval_batch: int | None = None,
) -> Record:
    """Add evaluations under shift to the record in `path`, and return it; nothing is trained.

    `shifts` are names, or `all`. `eval_batch` prompts are evaluated at once; None: see
    `default_eval_batch`. Raises UsageError for a shift that the task does not define; RecordError
    for a record that is damaged, lies outside a folder of records, is of another run by the
    installed code, or was replaced meanwhile; and RunError for shifts that fail, once the others
    are in the record.
    """
    path = path_of(path).resolve()
    names = (shifts,) if isinstance(shifts, str) else tuple(shifts)
    record = read_record(path)
    settings = Settings(path.parent.parent, device, eval_batch=eval_batch)
    require_place(path, record)
    require_writable(settings.out)
    plan = recompute(path, record).plan
    differing = [check for check in compare_spec(record, plan) if not check.holds]
    if differing:
        raise RecordError(
            f"{path}: the installed code makes another run of its command: "
            f"{differing[0].difference}"
        )
    request = plan.request.model_copy(update={"shift": names})
    return add_shifts(replace(plan, request=request), record, settings, find_device(device))


def add_shifts(plan: Plan, record: Record, settings: Settings, device: torch.device) -> Record:
    """The plan's record with an evaluation under every shift that the plan asks for.

    Those that the record has stay. Solvers and constructions are built again; trained and loaded
    weights are the record's. Raises UsageError for a shift that the task does not define, and
    RunError for those that fail, once the others are in the record.
    """
    present = present_shifts(record)
    names = [name for name in asked_shifts(plan) if name not in present]
    if not names:
        return record
    store = RecordStore(settings.out)
    given = recompute(store.path(record.spec), record).evaluation_plan
    with full_precision(DTYPES[record.spec.dtype]):
        models = given_models(given)
        by_seed = {model.seed: model for model in models}
        ordered = [by_seed[seed.seed] for seed in record.seeds]
        shifted = measure_shifts(given, ordered, names, settings, device)
    if not shifted.evaluations and not shifted.not_applicable:
        raise _failure(record, shifted.failed)
    # Another process may have added others meanwhile.
    record = _as_it_is_now(store, record)
    held = {*present_shifts(record), *names}.difference(shifted.failed)
    shifts = tuple(name for name in plan.task.shifts if name in held)
    request = RunSpec.from_command(record.command).model_copy(update={"shift": shifts})
    # Whoever has proved the record has not seen these evaluations.
    record = with_shifts(record.model_copy(update={"proof": None}), shifted, request.command())
    store.write(record)
    for name in set(names) & set(record.not_applicable):
        run_name = f"{record.spec.model} on {record.spec.task} under {name}"
        report(f"{run_name}: not applicable: {record.not_applicable[name]}")
    if shifted.failed:
        raise _failure(record, shifted.failed)
    return record


def _failure(record: Record, failed: Mapping[str, BaseException]) -> RunError:
    """The error that names every shift that failed, with its reason."""
    reasons = []
    for name, error in failed.items():
        named = f"shift {name}: "
        reasons.append(named + reason_of(error).removeprefix(named))
    error = RunError(f"{record.spec.model} on {record.spec.task}: {'; '.join(reasons)}")
    error.__cause__ = next(iter(failed.values()))
    return error
