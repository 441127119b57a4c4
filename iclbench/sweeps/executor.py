"""The executor of a sweep, a search or a campaign, and how many workers it gets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ..api.config import parse_config
from ..api.errors import RunError, UsageError
from ..api.executor import Executor, QueuedJob, QueueExecutor
from ..devices import require_devices
from ..plugins import host

#: The folder of executors' own files, in the output folder.
JOBS_FOLDER = "jobs"


def make_executor(name: str, args: Mapping[str, Any], out: Path) -> Executor:
    """The executor of that name for an output folder; raises UsageError."""
    executor: type[Executor] = host().load("executor", name, Executor)
    config = parse_config(executor.Config, args, f"executor {name}")
    return executor(config, out / JOBS_FOLDER / name)


def usable_executor(
    executor: str | Executor,
    args: Mapping[str, Any] | None,
    *,
    out: Path,
    device: str,
    workers: int | None,
) -> tuple[Executor, int]:
    """An executor, which may be given by its name, and its workers: by default as many as it says.

    Raises UsageError for arguments that it does not take, for fewer than one worker, and for a
    device that so many workers can't use.
    """
    if not isinstance(executor, Executor):
        executor = make_executor(executor, args or {}, out)
    workers = executor.workers if workers is None else workers
    if workers < 1:
        raise UsageError(f"workers={workers}: there must be at least 1")
    require_devices(device, workers, remote=executor.remote)
    return executor, workers


def queue_of(executor: Executor) -> list[QueuedJob]:
    """The jobs of its queue, for which it is asked again if need be; none without a queue."""
    return executor.patiently(executor.queue) if isinstance(executor, QueueExecutor) else []


def refused_of(
    executor: QueueExecutor, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
) -> list[str]:
    """Submit jobs; returns why the queue refused each one that it did not take, if it says so."""
    if not jobs:
        return []
    ids = set(executor.submit(function, jobs, workers))
    try:
        return [job.reason for job in queue_of(executor) if job.id in ids and job.refused]
    except RunError:
        return []


def outcomes_of(
    executor: Executor, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
) -> Generator[tuple[int, Any], None, None]:
    """What `executor.map` yields, and then a RunError for each job that it gave no outcome."""
    lacking = set(range(len(jobs)))
    with closing(executor.map(function, jobs, workers)) as outcomes:
        for index, outcome in outcomes:
            lacking.discard(index)
            yield index, outcome
    for index in sorted(lacking):
        yield index, RunError("the executor gave no result for it")
