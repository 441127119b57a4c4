"""The conformance check of executors; it raises ConformanceError."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from ..api.errors import RunError, UsageError
from ..api.executor import Executor, QueuedJob, QueueExecutor
from ..runs.checks import ConformanceError, expect
from .executors.probes import answer, this_process, wait_for_signal

#: How long workers may take to start, and running jobs to end at an interruption.
PATIENCE_SECONDS = 60.0

#: How long a job that should have been cancelled is given to start.
GRACE_SECONDS = 1.0


def check_executor(executor: Executor, workers: int = 2, folder: str | Path | None = None) -> None:
    """Check what `Executor` promises, with at least two workers.

    It takes seconds where processes start quickly. With a `QueueExecutor` it also checks that
    another one with the same folder knows the jobs. `folder` is one that all machines share; by
    default a temporary folder of this one.
    """
    expect(workers > 1, "one worker tests nothing; give at least 2")
    _check_results(executor, workers)
    with tempfile.TemporaryDirectory(dir=folder) as shared:
        _check_interruption(executor, workers, Path(shared))
    _check_repetition(executor, workers)
    if isinstance(executor, QueueExecutor):
        _check_queue(executor, workers)


def try_one(executor: Executor) -> None:
    """Run one job; raises UsageError or RunError where nothing can run, as without a cluster.

    What else is wrong `check_executor` finds.
    """
    job = {"caller": this_process(), "ends_by": "return", "value": 1, "seconds": 0}
    try:
        _outcomes(executor, [job], 1)
    except ConformanceError as error:
        if isinstance(error.__cause__, RunError):
            raise error.__cause__ from None


def _check_results(executor: Executor, workers: int) -> None:
    """Every job has its own result, whole, however the others end and whoever finishes first."""
    plain = {"caller": this_process(), "ends_by": "return"}
    jobs: list[dict[str, Any]] = [
        {**plain, "value": index, "seconds": 0.1 * (3 * workers - index)}
        for index in range(3 * workers)
    ]
    jobs += [{**plain, "value": "x" * 1_000_000, "seconds": 0}]
    jobs += [{**plain, "value": [None, 0.1, {"ä": []}], "seconds": 0}]
    # In the middle, so that jobs before and after them run beside them.
    jobs.insert(workers, {**plain, "value": None, "seconds": 0, "ends_by": "error"})
    jobs.insert(workers + 2, {**plain, "value": None, "seconds": 0, "ends_by": "death"})
    outcomes = _outcomes(executor, jobs, workers)
    indices = sorted(index for index, _ in outcomes)
    expect(indices == [*range(len(jobs))], f"jobs 0 to {len(jobs) - 1} gave results of {indices}")
    by_index = dict(outcomes)
    processes = [o["process"] for o in by_index.values() if isinstance(o, dict)]
    expect(this_process() not in processes, "jobs run in the calling process")
    for index, job in enumerate(jobs):
        outcome = by_index[index]
        if job["ends_by"] == "return":
            expect(isinstance(outcome, dict), f"a job that returns gave {outcome!r}")
            expect(
                outcome["value"] == job["value"], "a result belongs to another job or is incomplete"
            )
        else:
            expect(
                isinstance(outcome, BaseException),
                f"a job that ends by {job['ends_by']} gave {outcome!r}, not an exception",
            )
    _check_times([outcome for outcome in by_index.values() if isinstance(outcome, dict)], workers)


def _outcomes(executor: Executor, jobs: list[dict[str, Any]], workers: int) -> list[Any]:
    """What `map` yields. A thread waits for it, since it may wait forever for a dead process."""
    outcomes: list[Any] = []
    errors: list[BaseException] = []

    def collect() -> None:
        try:
            outcomes.extend(executor.map(answer, jobs, workers))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(3 * PATIENCE_SECONDS)
    for error in errors:
        if isinstance(error, UsageError):
            raise error  # it can't be used here
        raise ConformanceError(f"map() raises {error!r}") from error
    waiting = f"{len(jobs) - len(outcomes)} of {len(jobs)} jobs have no result after a long wait"
    expect(not thread.is_alive(), f"{waiting}; the process of one job dies")
    return outcomes


def _check_times(runs: list[dict[str, Any]], workers: int) -> None:
    """No process ran two jobs at once, and no machine more than `workers`."""
    for one, other in itertools.combinations(runs, 2):
        together = one["began"] < other["ended"] and other["began"] < one["ended"]
        shared = one["process"] == other["process"]
        expect(not (together and shared), "a process runs two jobs at once")
    for run in runs:
        at_once = [
            other for other in runs
            if other["process"][0] == run["process"][0]
            and other["began"] <= run["began"] < other["ended"]
        ]  # fmt: skip
        expect(len(at_once) <= workers, f"{len(at_once)} jobs run at once, with {workers} workers")


def _check_interruption(executor: Executor, workers: int, folder: Path) -> None:
    """Closing the generator ends the jobs that run, by SIGTERM, and starts no other."""

    def marked(ending: str) -> set[str]:
        return {path.stem for path in folder.glob(f"*.{ending}")}

    jobs = [
        {"index": index, "folder": str(folder), "seconds": 3 * PATIENCE_SECONDS}
        for index in range(3 * workers)
    ]
    outcomes = executor.map(wait_for_signal, jobs, workers)
    next(outcomes)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not marked("started") and time.monotonic() < deadline:
        time.sleep(0.02)
    expect(bool(marked("started")), "no second job starts")
    closed = time.monotonic()
    outcomes.close()
    seconds = time.monotonic() - closed
    expect(seconds < PATIENCE_SECONDS, f"closing the generator takes {seconds:.0f} seconds")
    started = marked("started")
    time.sleep(GRACE_SECONDS)
    expect(marked("started") == started, "a job starts after the generator has been closed")
    expect(marked("saved") == started, "a running job ends without SIGTERM, or does not end")
    if isinstance(executor, QueueExecutor):
        listed = _as_others_see(executor)
        active = [job.id for job in listed if job.active]
        expect(not active, f"after an interruption the queue still has the jobs {active}")
        failed = [job.id for job in listed if job.state == "failed" and job.job in jobs]
        expect(not failed, f"jobs that an interruption cancelled are listed as failed: {failed}")


def _check_repetition(executor: Executor, workers: int) -> None:
    """Jobs that have run, or were interrupted, can be run again."""
    jobs = [{"caller": this_process(), "ends_by": "return", "value": 1, "seconds": 0}]
    for _ in range(2):
        results = [outcome for _, outcome in _outcomes(executor, jobs, workers)]
        again = [r["value"] for r in results if isinstance(r, dict)] == [1]
        expect(again, f"a job that is run again gives {results!r}")


def _check_queue(executor: QueueExecutor, workers: int) -> None:
    """What was submitted is known to another executor with the same folder, each job once."""
    known = {job.id for job in executor.queue()}
    plain = {"caller": this_process(), "seconds": 0}
    jobs: list[dict[str, Any]] = [
        {**plain, "value": value, "ends_by": ends} for value, ends in ((1, "return"), (2, "error"))
    ]
    ids = executor.submit(answer, jobs, workers)
    expect(len({*ids}) == len(jobs), f"{len(jobs)} jobs have the ids {ids}")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(job.active for job in _as_others_see(executor)) and time.monotonic() < deadline:
        time.sleep(min(1.0, executor.poll_seconds))
    listed = [job for job in _as_others_see(executor) if job.id not in known]
    active = [job.id for job in listed if job.active]
    expect(not active, f"the jobs {active} have not ended after a long wait")
    expect([job.id for job in listed] == ids, f"of {ids}, the queue of another process has "
            f"{[job.id for job in listed]}")  # fmt: skip
    expect([job.job for job in listed] == jobs, "a queue does not list the submitted jobs")
    done, failed = listed
    states = f"{done.state} and {failed.state}"
    expect(
        (done.state, failed.state) == ("done", "failed"),
        f"a done and a failed job are listed as {states}",
    )
    expect(done.result["value"] == 1, "the result of a job is not kept")
    expect(bool(failed.reason), "a failed job has no reason")


def _as_others_see(executor: QueueExecutor) -> list[QueuedJob]:
    """The queue as another process with the same folder sees it."""
    return type(executor)(executor.config, executor.folder).queue()
