"""Jobs: the programs of a sweep as executors get them, and running one."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from ..api.config import parse_config
from ..api.errors import (
    PLUGIN_FAILURES,
    CheckpointError,
    first_line,
    is_out_of_memory,
    reason_of,
)
from ..api.spec import RunSpec, canonical_json
from ..console import report, show_traceback
from ..devices import free_memory, gpu_is_usable
from ..runs.plan import Plan, resolve
from ..runs.reuse import standing
from ..runs.run import run_plans
from ..runs.settings import Settings
from ..runs.shifts import asked_shifts
from ..runs.store import RecordStore
from ..training.interruption import ignore, interruptible

#: Errors of a file that is not there, which a cell may have named.
ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)

#: Plans of this process's sweep by their requests: a program in this process need not make them
#: again. Each is used once.
_plans: dict[str, Plan] = {}


@contextmanager
def plans_at_hand() -> Iterator[dict[str, Plan]]:
    """Within the block, jobs of this process take plans from what it gets, by request as JSON."""
    try:
        yield _plans
    finally:
        _plans.clear()


def request_of(spec: RunSpec) -> dict[str, Any]:
    """A request as JSON, without the fields that have their default."""
    return spec.model_dump(mode="json", exclude_defaults=True)


def job_of(requests: Sequence[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    """The job, a JSON value, of the program that runs these requests."""
    return {"requests": list(requests), **settings_json(settings)}


def settings_json(settings: Settings) -> dict[str, Any]:
    """Settings as a job has them: it may run in another folder, and repeats nothing."""
    return {**asdict(settings), "out": str(settings.out.absolute()), "force": False}


def settings_of(job: Mapping[str, Any]) -> Settings:
    """The settings of a job."""
    return Settings(**{f.name: job[f.name] for f in fields(Settings)} | {"out": Path(job["out"])})


def run_job(job: dict[str, Any]) -> list[str | None]:
    """Run one program's cells; returns the reason of each one's failure, or None.

    Reasons are text, which crosses processes. If the program fails, its cells are run one by one,
    so that a failure stays that of its cell. If memory is short, they are run in halves. Running a
    job again continues it: records and checkpoints are in its output folder. All its cells fail if
    its checkpoint can't be continued, or files can't be read or written. SIGTERM has it save a
    checkpoint and raise Interrupted.
    """
    # An executor may pass on a signal that the terminal has sent to the job as well.
    with interruptible(second=ignore):
        return _run_together(job["requests"], settings_of(job))


def _run_together(requests: list[dict[str, Any]], settings: Settings) -> list[str | None]:
    parts = [requests[i : i + 1] for i in range(len(requests))]
    plans: list[Plan] = []
    begun: list[Plan] | None = None
    stays = False
    forget_programs(settings)
    try:
        plans = [_plan(request) for request in requests]
        begun = _without_record(plans, settings)
        run_plans(plans, settings)
        return [None] * len(requests)
    except PLUGIN_FAILURES as error:
        if is_out_of_memory(error):
            half = (len(requests) + 1) // 2
            reason, parts = first_line(error), [requests[:half], requests[half:]]
        else:
            show_traceback(error)
            reason = reason_of(error)
            is_lost = isinstance(error, CheckpointError) or _is_of_files(error)
            stays = (is_lost and begun != []) or not gpu_is_usable()
    if len(requests) == 1:
        return [reason]
    if stays:
        # Each cell alone would be trained from its first step, at many times the cost, and without
        # room on the disk, or a GPU, it would fail too. What a network file system refuses once, it
        # may give to the next call.
        if begun is None:
            return [reason] * len(requests)
        store = RecordStore(settings.out)
        stand = [standing(store, plan.spec, asked_shifts(plan)) for plan in plans]
        return [None if stands.is_whole else reason for stands in stand]
    report(f"{len(requests)} runs as one program: {reason}; going on with {len(parts)} parts of it")
    return [outcome for part in parts for outcome in _run_together(part, settings)]


def _is_of_files(error: BaseException) -> bool:
    """Whether the file system refuses, or is away, which says nothing of a cell."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError) or isinstance(cause, ABSENT) or cause.errno is None:
        return False
    # Lustre, which has ESHUTDOWN, is no connection.
    return cause.errno == errno.ESHUTDOWN or not isinstance(cause, ConnectionError)


def _without_record(plans: Sequence[Plan], settings: Settings) -> list[Plan]:
    store = RecordStore(settings.out)
    return [plan for plan in plans if standing(store, plan.spec).state == "missing"]


def forget_programs(settings: Settings) -> None:
    """Free what earlier programs of this process left: memory of a GPU, and compiled code.

    A training refers to itself, so only the collector frees it and the memory of its graph. torch
    compiles a function for a few models and runs it uncompiled for all later ones.
    """
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        free_memory()
    if settings.engine == "compiled":
        torch._dynamo.reset()


def _plan(request: dict[str, Any]) -> Plan:
    plan = _plans.pop(canonical_json(request), None)
    return plan or resolve(parse_config(RunSpec, request, "run"))
