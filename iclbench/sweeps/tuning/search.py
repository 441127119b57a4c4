"""Searching: run the trials of a tuning, those that share a program together, and choose the best.

Every trial is a run with a record of its own, in the folder `tuning` of the output folder. So a
search that is repeated continues, and one that has ended gives the same document again.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...api.errors import reason_of
from ...api.executor import Executor, JobListener
from ...api.tuning import TuningDocument
from ...console import Reporter, counted
from ...runs.exclusive import alone
from ...runs.plan import Plan
from ...runs.settings import Settings
from ...runs.store import RecordStore
from ...runs.tuned import write_tuning
from ..executor import outcomes_of, usable_executor
from ..jobs import job_of, request_of, run_job
from .document import document_of
from .planning import TRIALS_FOLDER, PlannedSearch, PlannedTrial, planned_search
from .settings import SearchSettings


def tune(
    plan: Plan,
    settings: Settings,
    search: SearchSettings | None = None,
    report: Reporter = lambda line: None,
    listener: JobListener | None = None,
) -> TuningDocument:
    """Search for the arguments of a plan, on prompts and seeds that its board doesn't use.

    `report` gets a line per finished program of trials, and `listener` what the executor tells.

    Raises UsageError for a plan that trains nothing, for an argument that is given and searched,
    and for a device that can't be used, and RunError if no trial gives a score.
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
    with alone(settings.out / TRIALS_FOLDER / f"search-{planned.key}", "running this search"):
        failures = _run(planned.trials, settings, search, report, listener)
    return document_of(planned, RecordStore(settings.out / TRIALS_FOLDER), failures, search)


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
    """What runs the trials, and how many workers it has; raises UsageError as `tune` does."""
    return usable_executor(
        search.executor,
        search.executor_args,
        out=settings.out / TRIALS_FOLDER,
        device=settings.device,
        workers=search.workers,
    )


def _run(
    trials: list[PlannedTrial],
    settings: Settings,
    search: SearchSettings,
    report: Reporter,
    listener: JobListener | None,
) -> dict[int, str]:
    """Run the trials, one program after another; returns why trials failed, by index.

    A program whose process died gets one more turn. On this machine it then runs alone, since those
    beside it may have taken the memory, and again in a process of its own, which may die as well. A
    trial that failed is never tried again.
    """
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
    ended, dead = 0, []
    with closing(outcomes_of(executor, run_job, jobs, workers)) as outcomes:
        for job, outcome in outcomes:
            if isinstance(outcome, BaseException):
                report(f"{counted(len(members[job]), 'trial')} to run again: {reason_of(outcome)}")
                dead.append(job)
                continue
            ended += 1
            failures |= _failures(members[job], outcome, f"[{ended}/{len(jobs)}]", report)
    turns = [dead] if executor.remote and dead else [[job] for job in dead]
    for turn in turns:
        again = [jobs[job] for job in turn]
        with closing(outcomes_of(executor, run_job, again, workers)) as outcomes:
            for index, outcome in outcomes:
                ended += 1
                group = members[turn[index]]
                failures |= _failures(group, outcome, f"[{ended}/{len(jobs)}]", report)
    return failures


def _failures(group: list[int], outcome: Any, progress: str, report: Reporter) -> dict[int, str]:
    """Why trials of a program failed, by index; reports how it ended."""
    is_error = isinstance(outcome, BaseException)
    reasons = [reason_of(outcome)] * len(group) if is_error else outcome
    failed = {i: r for i, r in zip(group, reasons, strict=True) if r is not None}
    state = f"{len(failed)} of {len(group)} failed" if failed else "done"
    report(f"{progress} {counted(len(group), 'trial')} as one program: {state}")
    return failed
