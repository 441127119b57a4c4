"""Programs: the cells of a sweep that train together, and running them by an executor."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from ..api.errors import RecordError, RunError, UsageError, problem_with, reason_of
from ..api.executor import Executor, QueuedJob, QueueExecutor
from ..api.record import Record
from ..console import Reporter, counted
from ..runs.reuse import standing
from ..runs.settings import Settings
from .cells import Cells, SweepCell
from .executor import outcomes_of, queue_of, refused_of
from .grouped_cells import group_missing, unused_checkpoints
from .jobs import job_of, run_job

#: How long a record that another machine wrote may take to be seen here.
RECORD_SECONDS = 10.0

#: The cell of every request of a job, None for a request of no cell; and the job.
Queued = tuple[list[SweepCell | None], QueuedJob]


@dataclass
class Programs:
    """Runs cells as programs of at most `replicas` models, and collects the failures."""

    executor: Executor
    workers: int
    replicas: int
    settings: Settings
    cells: Cells
    report: Reporter
    already_done: int = 0
    _described_seen: bool = field(default=False, init=False)
    _record_seconds: float = field(default_factory=lambda: RECORD_SECONDS, init=False)

    def run(self, cells: list[SweepCell]) -> None:
        """Run the cells that have no record, and wait for them."""
        missing, queued = self._sorted(cells)
        new = self._grouped(cells, missing, queued)
        groups: list[Sequence[SweepCell | None]] = [*(group for group, _ in queued), *new]
        jobs = [self._job(group) for group in new]
        with closing(self._outcomes(jobs, [job for _, job in queued])) as outcomes:
            for finished, (index, outcome, log) in enumerate(outcomes, start=1):
                group = groups[index]
                failed = self._add_failures(group, outcome, log)
                state = f"failed: {failed}" if failed else f"done{self._speedup(group)}"
                self.report(f"[{finished}/{len(groups)}] {_names(group)}: {state}")
                if not failed and not self._described_seen:
                    self._look_at_described(group)
        self.cells.forgive_recorded()

    def submit(self, cells: list[SweepCell]) -> int:
        """Submit the cells that have neither a record nor a job; returns how many have a job."""
        assert isinstance(self.executor, QueueExecutor)
        missing, queued = self._sorted(cells)
        jobs = [self._job(group) for group in self._grouped(cells, missing, queued)]
        refused = refused_of(self.executor, run_job, jobs, self.workers)
        if jobs or queued:
            there = counted(len(jobs) - len(refused), "program")
            self.report(f"{there} submitted, {len(queued)} in the queue already")
        if refused:
            raise RunError(f"{counted(len(refused), 'program')} not in the queue: {refused[0]}")
        return len(missing) + sum(cell is not None for group, _ in queued for cell in group)

    def _sorted(self, cells: list[SweepCell]) -> tuple[list[SweepCell], list[Queued]]:
        """The cells to run, and those that a queue has already, with their jobs."""
        # The queue before the records: a job that ends in between has left its record.
        jobs = [job for job in queue_of(self.executor) if job.active]
        missing, damaged = self.cells.missing(cells)
        for failure in self.cells.fail_damaged(damaged):
            self.report(f"can't be run: {failure.command}: {failure.reason}")
        skipped = len(cells) - len(missing) - len(damaged)
        self.already_done += skipped
        changed = self.cells.of_other_code(cells)
        queued = jobs_of(missing, jobs)
        held = {cell.id for group, _ in queued for cell in group if cell is not None}
        more = f", {len(held)} in the queue" if held else ""
        self.report(
            f"{counted(len(cells), 'run')}: {skipped} skipped{changed}{more}, "
            f"{len(missing) - len(held)} to run"
        )
        return [cell for cell in missing if cell.id not in held], queued

    def _grouped(
        self, cells: Sequence[SweepCell], missing: Sequence[SweepCell], queued: Sequence[Queued]
    ) -> list[list[SweepCell]]:
        """The missing cells of each program; reports checkpoints that no program continues."""
        groups = group_missing(cells, missing, self.replicas, self.cells.store)
        waiting = [[cell for cell in group if cell is not None] for group, _ in queued]
        if unused := unused_checkpoints(cells, [*groups, *waiting], self.cells.store):
            self.report(unused)
        return groups

    def _job(self, group: Sequence[SweepCell]) -> dict[str, Any]:
        job = job_of([json.loads(cell.request) for cell in group], self.settings)
        return {**job, "ids": [cell.id for cell in group]}

    def _outcomes(
        self, jobs: list[Any], queued: list[QueuedJob]
    ) -> Generator[tuple[int, Any, str], None, None]:
        """Yield index, result and log of each job: those in the queue come first, then `jobs`."""
        if not isinstance(self.executor, QueueExecutor):
            if not jobs:
                return
            with closing(outcomes_of(self.executor, run_job, jobs, self.workers)) as outcomes:
                for index, outcome in outcomes:
                    yield index, outcome, ""
            return
        submitted = self.executor.submit(run_job, jobs, self.workers) if jobs else []
        ids = [*(job.id for job in queued), *submitted]
        positions = {job_id: index for index, job_id in enumerate(ids)}
        with closing(self.executor.follow(ids)) as changes:
            for job in changes:
                if job.active:
                    why = f" ({job.reason})" if job.reason else ""
                    self.report(f"program {positions[job.id] + 1}: {job.state}{why}, {job.log}")
                else:
                    yield positions[job.id], job.outcome, job.log

    def _add_failures(self, group: Sequence[SweepCell | None], outcome: Any, log: str) -> str:
        """Add the failures of a program's cells; returns the reason of the first, if any."""
        if isinstance(outcome, BaseException):
            outcome = [reason_of(outcome)] * len(group)
        first = ""
        for cell, reason in zip(group, outcome, strict=True):
            if cell is None:
                continue
            problem, damaged = self._problem_of_record(cell) if reason is None else (reason, False)
            if problem is not None:
                self.cells.fail(cell, problem, log, damaged=damaged)
                first = first or problem
        return first

    def _problem_of_record(self, cell: SweepCell) -> tuple[str | None, bool]:
        """Why the record of a cell that has run can't be used, or None; and if it is damaged.

        A program may succeed and yet leave nothing here, on a disk that only its machine has.
        """
        try:
            if self._awaited(cell) is not None:
                return self._problem_of_shifts(cell), False
        except RecordError as error:
            return str(error), True
        except OSError as error:
            return problem_with(self.cells.store.path(cell), error), False
        return f"its program ended without a record in {self.settings.out}", False

    def _problem_of_shifts(self, cell: SweepCell) -> str | None:
        """Why a record is not enough: its job may be older than the request for some shifts."""
        missing = standing(self.cells, cell, cell.shifts).missing_shifts
        if not missing:
            return None
        what = f"its job was submitted without {', '.join(missing)}"
        return f"{what}; the same command adds them"

    def _awaited(self, cell: SweepCell) -> Record | None:
        """The cell's record, for which a network file system may need some seconds."""
        deadline = time.monotonic() + self._record_seconds
        while True:
            with suppress(OSError):
                # Opening the folder makes NFS forget that it had no such file.
                os.scandir(self.cells.store.path(cell).parent).close()
            is_last = time.monotonic() >= deadline
            record = None
            try:
                record = self.cells.find(cell)
            except OSError:
                if is_last:
                    raise
            if record is not None:
                self._record_seconds = RECORD_SECONDS
                return record
            if is_last:
                # Thousands of programs that write elsewhere must not wait one after another.
                self._record_seconds = 0.0
                return None
            time.sleep(1.0)

    def _look_at_described(self, group: Sequence[SweepCell | None]) -> None:
        """Report what the figure and the table name and the first record lacks, before the end."""
        self._described_seen = True
        figure, table = self.cells.file.figure, self.cells.file.table
        record = self.cells.find(next(cell for cell in group if cell is not None))
        if record is None:
            return
        if figure is not None and not figure.lacks:
            try:
                figure.require_results(record)
            except UsageError as error:
                self.report(f"it won't be drawn: {error}")
        for name in table.unmatched([*record.floor, *record.metrics]) if table is not None else ():
            self.report(f"table: no metric of the first record matches {name!r}")

    def _speedup(self, group: Sequence[SweepCell | None]) -> str:
        """What a program gained by training its models together, according to its first record."""
        cells = [cell for cell in group if cell is not None]
        record = self.cells.find(cells[0])
        training = record.training if record is not None else None
        if training is None or training.speedup is None:
            return ""
        count = sum(cell.seeds for cell in cells)
        return f", {count} models trained {training.speedup:.1f} times as fast as one by one"


def jobs_of(cells: Sequence[SweepCell], jobs: Sequence[QueuedJob]) -> list[Queued]:
    """The jobs that run any of these cells, each with the cell of every request, None for others.

    Cells are known by their ids: one run may be asked for in other words, with a default spelled
    out. Of several jobs, a cell belongs to the last one in the queue, or else to the last one. Jobs
    of a search or a campaign have no ids.
    """
    known = {cell.id: cell for cell in cells}
    ordered = sorted(jobs, key=lambda job: job.active)
    groups = [(job, [known.get(name) for name in job.job.get("ids", ())]) for job in ordered]
    last = {cell.id: job.id for job, group in groups for cell in group if cell is not None}
    matched = []
    for job, group in groups:
        members = [cell if cell is not None and last[cell.id] == job.id else None for cell in group]
        if any(members):
            matched.append((members, job))
    return matched


def _names(group: Sequence[SweepCell | None]) -> str:
    """Models on tasks, each once with the number of its cells: `lsa on least-squares (2 runs)`."""
    counts = Counter(f"{cell.model} on {cell.task}" for cell in group if cell is not None)
    names = [f"{name} ({count} runs)" if count > 1 else name for name, count in counts.items()]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
