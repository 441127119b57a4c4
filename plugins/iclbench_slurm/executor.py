"""Slurm: submits programs as job arrays by submitit, and tells of them from queue and files."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import submitit
from submitit.core.utils import FailedJobError, FailedSubmissionError, JobPaths

from iclbench import QueuedJob, QueueExecutor, RunError, UsageError

from .batches import Batch, new_batch, read_batches
from .config import SlurmConfig
from .environment import without_inherited
from .program import Program
from .squeue import InQueue, command, jobs_in_queue, shows_jobs_of_others

#: The most ids in one call of scancel.
MOST_IDS = 500
#: How long a file that another machine wrote may take to be seen here.
GRACE_SECONDS = 15.0
#: How often and how many seconds apart cancelling is tried: without it jobs run on for days.
CANCEL_TRIES, CANCEL_SECONDS = 5, 3.0
#: How much of a log is read to say how it ends.
LAST_BYTES = 4000
#: What srun adds when a step has ended, whatever the reason.
NOISE = re.compile(
    "srun: (got SIG|forcing job|Force Terminated|Job step aborted|error: .*: Exited with exit code)"
)


class Slurm(QueueExecutor):
    """Programs as Slurm jobs. A preempted one saves a checkpoint and is requeued."""

    name = "slurm"
    Config = SlurmConfig

    def __init__(self, config: SlurmConfig | None = None, folder: str | Path | None = None) -> None:
        super().__init__(config, folder)
        self.poll_seconds = self.config.poll_seconds
        #: When jobs that were in the queue were first missed there.
        self._missed: dict[str, float] = {}
        #: Jobs whose outcome is known, so that their files need not be read again.
        self._ended: dict[str, QueuedJob] = {}

    def submit(
        self, function: Callable[[Any], Any], jobs: Sequence[Any], workers: int
    ) -> list[str]:
        """See `QueueExecutor.submit`."""
        size = self.config.array_size
        parts = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        # Asked before a batch is written, which would stay: without a cluster there is none.
        if not self.patiently(self.queue):
            with _unreadable_files():
                jobs_in_queue()
        most = min(workers, self.config.array_parallelism or workers)
        #: So many arrays run side by side; each of the others waits for one of them to end.
        lanes = max(1, min(most, len(parts)))
        ids: list[str] = []
        batches: list[Batch] = []
        refused = ""
        for part in parts:
            batch = new_batch(self.folder, part)
            batch.refused = refused
            batch.write(self.folder)
            ids += batch.ids
            if refused:
                continue
            after = batches[-lanes].array if len(batches) >= lanes else None
            name = f"{function.__module__}:{function.__qualname__}"
            try:
                share = most // lanes + (len(batches) % lanes < most % lanes)
                self._submit(batch, name, share, after)
            except BaseException as error:
                if isinstance(error, RunError) and batches:
                    # A site limits how many jobs a user may have. Those before have begun.
                    refused = batch.refused = f"{error}; the same command submits it again"
                    continue
                batch.cancelled = list(range(len(part)))
                # Nobody follows the arrays before this one, nor this one if Slurm has it.
                refused_alone = isinstance(error, RunError | UsageError)
                accepted = [job_id for earlier in batches for job_id in earlier.ids]
                with suppress(RunError):
                    self.cancel(accepted if refused_alone else ids)
                raise
            finally:
                batch.write(self.folder)
            batches.append(batch)
        # A job may end before the queue is first asked.
        self._missed.update(dict.fromkeys(ids, math.inf))
        return ids

    def _submit(self, batch: Batch, function: str, at_once: int, after: str | None) -> None:
        """Submit a batch as an array, which starts once the array with the id `after` has ended."""
        programs = [
            Program(function, json.dumps(job), str(batch.outcome(self.folder, index)))
            for index, job in enumerate(batch.jobs)
        ]
        with _refusals():
            executor = submitit.SlurmExecutor(
                self._logs, max_num_timeout=self.config.max_num_timeout, python=self.config.python
            )
            parameters = self._parameters(batch.name, at_once, after)
            executor.update_parameters(**parameters)
            try:
                with without_inherited(parameters):
                    submitted = executor.submit_array(programs)
            except BaseException:
                # What was refused is the reason, not that there is nothing to cancel.
                with suppress(RunError):
                    command("scancel", "--me", f"--name={batch.name}")
                raise
        batch.slurm_ids = [job.job_id for job in submitted]

    def _parameters(self, name: str, at_once: int, after: str | None) -> dict[str, Any]:
        """The parameters of an array, in submitit's names for Slurm."""
        given = self.config.model_dump(exclude_none=True)
        ours = ("max_num_timeout", "array_size", "array_parallelism", "python", "poll_seconds")
        parameters = {key: value for key, value in given.items() if key not in ours}
        parameters["setup"] = list(self.config.setup)
        if self.config.cpus_per_task is not None:
            # Since Slurm 22.05, srun does not take this from sbatch.
            parameters["srun_args"] = [f"--cpus-per-task={self.config.cpus_per_task}"]
        parameters["time"] = parameters.pop("timeout_min")
        if self.config.mem_gb is not None:
            parameters["mem"] = f"{round(parameters.pop('mem_gb') * 1024)}MB"
        # A site may have it off by default.
        further = {"requeue": True, **self.config.additional_parameters}
        if after is not None:
            wanted = [f"afterany:{after}", *filter(None, [further.get("dependency")])]
            further["dependency"] = ",".join(wanted)
        parameters["additional_parameters"] = further
        return {**parameters, "job_name": name, "array_parallelism": at_once}

    def queue(self) -> list[QueuedJob]:
        """See `QueueExecutor.queue`."""
        with _unreadable_files():
            batches = read_batches(self.folder)
            in_queue = jobs_in_queue({b.user for b in batches if b.user}) if batches else {}
            self._require_seen(batches, in_queue)
            return [
                self._job(batch, index, in_queue.get(batch.job_id(index)))
                for batch in batches
                for index in range(len(batch.jobs))
            ]

    def _require_seen(self, batches: Sequence[Batch], in_queue: Container[str]) -> None:
        """Raise RunError if jobs of another user may be in the queue that is shown without them."""
        unseen = [b for b in batches if not b.is_ours and self._may_be_hidden(b, in_queue)]
        if unseen and not shows_jobs_of_others():
            raise RunError(
                f"slurm: the jobs of user {unseen[0].user} in {unseen[0].path(self.folder)} may "
                "still run, and this cluster hides them (PrivateData=jobs): wait for them, delete "
                "that file if they have ended, or use another folder"
            )

    def _may_be_hidden(self, batch: Batch, in_queue: Container[str]) -> bool:
        """Whether a job of a batch is neither in the queue nor known to have ended."""
        return not batch.refused and any(
            batch.job_id(index) not in in_queue
            and batch.job_id(index) not in self._ended
            and index not in batch.cancelled
            and not batch.outcome(self.folder, index).exists()
            for index in range(len(batch.jobs))
        )

    def _job(self, batch: Batch, index: int, in_queue: InQueue | None) -> QueuedJob:
        job_id, job = batch.job_id(index), batch.jobs[index]
        slurm_id = batch.slurm_ids[index] if batch.slurm_ids else None
        if in_queue is not None:
            log = self._log(in_queue.slurm_id)
            self._missed[job_id] = math.inf
            self._ended.pop(job_id, None)
            return QueuedJob(job_id, job, in_queue.state, in_queue.reason, str(log))
        if batch.refused:
            return QueuedJob(job_id, job, "failed", batch.refused, refused=True)
        return self._ended.get(job_id) or self._left(batch, index, slurm_id)

    def _left(self, batch: Batch, index: int, slurm_id: str | None) -> QueuedJob:
        """A job that is not in the queue, by what it has left."""
        job_id, job = batch.job_id(index), batch.jobs[index]
        ended = self._log(slurm_id) if slurm_id else None
        shown = str(ended) if ended else ""
        try:
            outcome = json.loads(batch.outcome(self.folder, index).read_text("utf-8"))
            is_known = True
        except FileNotFoundError:
            if index not in batch.cancelled and self._may_be_late(job_id):
                return QueuedJob(job_id, job, "running", "", shown)
            if index not in batch.cancelled and batch.is_being_submitted:
                return QueuedJob(job_id, job, "waiting", "it is being submitted")
            # An outcome that takes long to be seen here may still come.
            outcome, is_known = {"error": _ending(ended)}, index in batch.cancelled
        if "result" in outcome:
            left = QueuedJob(job_id, job, "done", "", shown, outcome["result"])
        elif index in batch.cancelled:
            left = QueuedJob(job_id, job, "cancelled", "it was cancelled", shown)
        else:
            left = QueuedJob(job_id, job, "failed", outcome["error"], shown)
        if is_known:
            self._ended[job_id] = left
        return left

    def _may_be_late(self, job_id: str) -> bool:
        """Whether a job has left the queue just now, so that its outcome may be seen later."""
        now = time.monotonic()
        if job_id not in self._missed:
            return False
        self._missed[job_id] = min(now, self._missed[job_id])
        return now - self._missed[job_id] < GRACE_SECONDS

    def cancel(self, ids: Collection[str]) -> None:
        """See `QueueExecutor.cancel`."""
        if not ids:  # perhaps there is no cluster, as where the first array was refused
            return
        for tries_left in reversed(range(CANCEL_TRIES)):
            try:
                with _unreadable_files():
                    self._cancel(set(ids))
                return
            except RunError:
                if not tries_left:
                    raise
                time.sleep(CANCEL_SECONDS)

    def _cancel(self, ids: Collection[str]) -> None:
        # Nobody but its user may cancel a job.
        batches = [batch for batch in read_batches(self.folder) if batch.is_ours]
        wanted = {job_id for batch in batches for job_id in batch.ids if job_id in ids}
        for batch in batches:
            ours = {i for i in range(len(batch.jobs)) if batch.job_id(i) in wanted}
            if ours:
                batch.cancelled = sorted(ours.union(batch.cancelled))
                batch.write(self.folder)
                for i in ours:
                    self._ended.pop(batch.job_id(i), None)
        asked = False
        while active := [j.slurm_id for key, j in jobs_in_queue().items() if key in wanted]:
            for start in range(0, len(active) if not asked else 0, MOST_IDS):
                command("scancel", *active[start : start + MOST_IDS])
            asked = True
            time.sleep(min(1.0, self.poll_seconds))

    @property
    def _logs(self) -> Path:
        return self.folder / "logs"

    def _log(self, slurm_id: str) -> Path:
        """The path of a job's messages."""
        return Path(JobPaths(self._logs, job_id=slurm_id).stderr)


def _ending(log: Path | None) -> str:
    """How a log ends: all that is known of a job that was killed or cancelled."""
    what = "it left the queue without a result"
    try:
        with (log or Path()).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return f"{what}, and has no log"
    messages = [line.strip() for line in lines if line.strip() and not NOISE.match(line)]
    return f"{what}; its log ends: {messages[-1]}" if messages else what


@contextmanager
def _unreadable_files() -> Iterator[None]:
    """Raise RunError for a file that can't be read or parsed.

    On a network file system that may pass, so it is no reason to end a sweep of days.
    """
    try:
        yield
    except (OSError, ValueError, TypeError) as error:
        raise RunError(f"slurm: {type(error).__name__}: {error}") from error


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise UsageError or RunError, in one line, for what submitit and sbatch refuse."""
    try:
        yield
    except (FailedJobError, FailedSubmissionError) as error:
        lines = [line for line in str(error).splitlines() if line.startswith("sbatch: ")]
        last = lines[-1] if lines else str(error)
        reason = last.removeprefix("sbatch: ").removeprefix("error: ")
        raise RunError(f"slurm: sbatch: {reason}") from None
    except RuntimeError as error:
        raise UsageError(f"slurm: {error}") from None
    except ValueError as error:
        raise UsageError(f"slurm: {str(error).splitlines()[0]}") from None
