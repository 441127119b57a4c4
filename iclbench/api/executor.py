"""Executor: runs the programs of a sweep, on this machine or elsewhere."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

from .config import Config
from .errors import RunError
from .spec import canonical_json

Function = Callable[[Any], Any]
Answer = TypeVar("Answer")


class JobListener:
    """Is told what jobs do while they run, so that it can show it; this one ignores all."""

    def jobs_begin(self, count: int) -> None:
        """So many jobs begin."""

    def job_started(self, index: int) -> None:
        """A job has started."""

    def job_called(self, index: int, hook: str, values: Mapping[str, Any]) -> None:
        """A job in another process has called a run hook.

        Those of a job in this process reach its plugins.
        """

    def job_ended(self, index: int) -> None:
        """A job has ended."""


class Executor(ABC):
    """Runs independent jobs in processes. `iclbench.check_executor` checks what is said here.

    **Processes, not threads.** A run sets the default dtype and the random generators of its
    process, so a process refuses a second run at the same time. One worker may be the calling
    process; several are processes of their own.

    **JSON values.** Jobs and their results are JSON values, and the function is importable by its
    name, so that a job can go to another machine. Jobs share a file system: they write records.

    **Failures.** A job that raises, or whose process dies, has an exception as its result. The
    other jobs are not affected.

    **Interruption.** When the generator is closed, or KeyboardInterrupt is raised while it waits,
    jobs that have not started never start. Those that run get SIGTERM or SIGINT and the time to
    save a checkpoint. No process is left when the generator has ended.

    **Repetition.** A job may be run again, after a failure or on another machine, but not twice at
    the same time. It skips the records that exist and continues from its checkpoint.
    """

    #: What users type: lower-case words joined by hyphens.
    name: ClassVar[str]
    #: What `--executor-args` may set.
    Config: ClassVar[type[Config]] = Config
    #: How many jobs run at once where the user doesn't say.
    workers: ClassVar[int] = 1
    #: Whether jobs run elsewhere, so that the devices of this machine don't matter.
    remote: ClassVar[bool] = False
    #: Is told what jobs do, by executors that know; set before `map`.
    listener: JobListener | None = None

    def __init__(self, config: Any = None, folder: str | os.PathLike[str] | None = None) -> None:
        """`folder` is for the executor's own files, such as logs; all machines share it."""
        self.config: Any = self.Config() if config is None else config
        self.folder = Path(folder or "jobs").absolute()

    @abstractmethod
    def map(
        self, function: Function, jobs: Sequence[Any], workers: int
    ) -> Generator[tuple[int, Any], None, None]:
        """Yield (index of the job, result) once per job, as jobs finish, in any order.

        At most `workers` jobs run at once.
        """


State = Literal["waiting", "running", "done", "failed", "cancelled"]
STATES = ", ".join(get_args(State))


@dataclass(frozen=True)
class QueuedJob:
    """A job that was submitted to a queue, and where it is.

    `job` is what `submit` was given, so that others know which runs it has. `reason` says why it
    waits or failed, and `log` is the path of its output. `result` is that of a job that is done. A
    job that was `cancelled` has not failed: it may be submitted again. One that the queue has
    `refused` failed before it was there.
    """

    id: str
    job: Any
    state: State
    reason: str = ""
    log: str = ""
    result: Any = None
    refused: bool = False

    def __post_init__(self) -> None:
        if self.state not in get_args(State):
            raise RunError(f"job {self.id}: its state is {self.state!r}, not one of {STATES}")

    @property
    def active(self) -> bool:
        """Whether the queue still has it."""
        return self.state in {"waiting", "running"}

    @property
    def outcome(self) -> Any:
        """The result of a job that has ended, or the exception in its place."""
        return self.result if self.state == "done" else RunError(self.reason or self.state)


class QueueExecutor(Executor):
    """An executor whose jobs outlive the process that submits them.

    What it must remember of them is in its folder: another process with the same folder finds them.
    A job may be run again by the queue, for example after it was preempted.
    """

    remote = True
    workers = 256
    #: How often the queue is asked.
    poll_seconds: float = 10.0
    #: How many times in a row it may give no answer while jobs are followed …
    patience: ClassVar[int] = 60
    #: … and how many times before they are submitted.
    first_patience: ClassVar[int] = 6
    #: How many answers in a row may lack a job before it counts as failed. A file system that is
    #: away for a minute may look empty, and a job that is submitted again must not run twice.
    most_absences: ClassVar[int] = 30

    @abstractmethod
    def submit(self, function: Function, jobs: Sequence[Any], workers: int) -> list[str]:
        """Submit jobs, of which at most `workers` run at once; returns their ids in order.

        Raises RunError if the queue takes none. Jobs that it refuses after it took others are
        `refused` in the answer of `queue`.
        """

    @abstractmethod
    def queue(self) -> list[QueuedJob]:
        """Every job that was submitted with this folder, oldest first.

        Raises RunError if the queue doesn't answer.
        """

    @abstractmethod
    def cancel(self, ids: Collection[str]) -> None:
        """Remove waiting jobs, end running ones by SIGTERM, and wait until they have ended."""

    def patiently(self, ask: Callable[[], Answer]) -> Answer:
        """What `ask` returns, called again some times where it raises RunError."""
        for _ in range(self.first_patience):
            try:
                return ask()
            except RunError:
                time.sleep(self.poll_seconds)
        return ask()

    def map(
        self, function: Function, jobs: Sequence[Any], workers: int
    ) -> Generator[tuple[int, Any], None, None]:
        """See `Executor.map`. Jobs that the queue still has, of a process that died, are joined."""
        keys = [canonical_json(job) for job in jobs]
        held = {canonical_json(job.job): job.id for job in self.patiently(self.queue) if job.active}
        new = {key: job for key, job in zip(keys, jobs, strict=True) if key not in held}
        if new:
            held |= zip(new, self.submit(function, list(new.values()), workers), strict=True)
        with closing(self.follow([held[key] for key in dict.fromkeys(keys)])) as changes:
            for job in changes:
                if not job.active:
                    yield from (
                        (i, job.outcome) for i, key in enumerate(keys) if held[key] == job.id
                    )

    def follow(self, ids: Sequence[str]) -> Generator[QueuedJob, None, None]:
        """Yield each job whenever its state changes, until all are done or have failed.

        Closing the generator cancels them.
        """
        known: dict[str, QueuedJob] = {}
        absences = dict.fromkeys(ids, 0)
        unanswered = 0
        left = set(ids)
        try:
            while left:
                try:
                    jobs = [job for job in self.queue() if job.id in left]
                    unanswered = 0
                    jobs += self._vanished(left.difference(job.id for job in jobs), known, absences)
                except RunError:
                    unanswered += 1
                    if unanswered > self.patience:
                        raise
                    jobs = []
                for job in jobs:
                    before, known[job.id] = known.get(job.id), job
                    if before is None or before.state != job.state:
                        if not job.active:
                            left.discard(job.id)
                        yield job
                if left:
                    time.sleep(self.poll_seconds)
        except (GeneratorExit, KeyboardInterrupt) as stop:
            try:
                self.cancel(left)
            except RunError as error:
                # It must not take the place of what stopped this.
                stop.add_note(f"the jobs could not be cancelled, and go on: {error}")
            raise

    def _vanished(
        self, absent: Collection[str], known: Mapping[str, QueuedJob], absences: dict[str, int]
    ) -> list[QueuedJob]:
        """The jobs that too many answers in a row lacked, as failed; counts the `absences`."""
        absences.update({i: count + 1 if i in absent else 0 for i, count in absences.items()})
        return [
            replace(
                known.get(job_id) or QueuedJob(job_id, None, "waiting"),
                state="failed",
                reason="the queue's files no longer list it",
            )
            for job_id in absent
            if absences[job_id] > self.most_absences
        ]
