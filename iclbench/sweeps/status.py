"""The status of a sweep's cells, from the records and the queues of executors."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..api.errors import RunError, UsageError, reason_of
from ..api.executor import QueuedJob, QueueExecutor
from ..files import path_of
from ..plugins import host
from ..runs.reuse import standing
from ..runs.store import RecordStore
from .cells import Cells, Failure, SweepCell
from .executor import JOBS_FOLDER, make_executor
from .files import QUICK, SweepSource, read_sweep_file, stages_of
from .programs import checkpoint_of_group, group_missing, jobs_of

State = Literal["done", "running", "waiting", "failed", "begun", "not begun"]
#: Where a cell is, in the order in which states are shown.
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "begun", "not begun")


@dataclass(frozen=True)
class CellStatus:
    """Where a cell is. `reason` says why it waits or failed; `log` is its program's output.

    One that is begun has a checkpoint: a local process trains it, or has been stopped.
    """

    cell: SweepCell
    state: State
    reason: str = ""
    log: str = ""


@dataclass
class SweepStatus:
    """Where every cell is. `unusable` can't be run, and `later` grids take weights of others.

    `unanswered` has a line for each queue that can't be asked: its programs seem not begun.
    """

    cells: list[CellStatus] = field(default_factory=list)
    unusable: list[Failure] = field(default_factory=list)
    later: int = 0
    unanswered: list[str] = field(default_factory=list)

    def count(self, state: State) -> int:
        """How many cells are in a state."""
        return sum(status.state == state for status in self.cells)


def sweep_status(
    file: SweepSource, *, out: str | Path | None = None, size: str = QUICK
) -> SweepStatus:
    """Where every cell of a sweep is; runs nothing. See `sweep` for the arguments.

    Raises UsageError if the file can't be used.
    """
    sized = read_sweep_file(file).sized(size)
    folder = path_of(out or sized.out)
    status, store = SweepStatus(), RecordStore(folder)
    cells = Cells(sized, store)
    jobs, status.unanswered = queued_jobs(folder)
    for stage in stages_of(sized):
        status.cells += _with_checkpoints(
            _statuses(cells.resolve(stage), jobs, store), sized.replicas, store
        )
    status.unusable, status.later = cells.failures, len(cells.waiting)
    return status


def queued_jobs(out: Path) -> tuple[list[QueuedJob], list[str]]:
    """The jobs of every executor with a queue that has a folder in this output folder.

    Also a line for each queue that can't be asked, for example where OUT is a copy from a cluster.
    """
    jobs: list[QueuedJob] = []
    unanswered: list[str] = []
    names = {entry.name for _, entry in host().entries("executor")}
    for folder in sorted((out / JOBS_FOLDER).glob("*/")):
        if folder.name in names:
            try:
                executor = make_executor(folder.name, {}, out)
                jobs += executor.queue() if isinstance(executor, QueueExecutor) else []
            except (UsageError, RunError) as error:
                unanswered.append(
                    f"the queue of {folder} can't be asked: {reason_of(error)}; its waiting and "
                    "running programs are not recognized"
                )
    return jobs, unanswered


def _statuses(
    cells: list[SweepCell], jobs: list[QueuedJob], store: RecordStore
) -> list[CellStatus]:
    known = {
        cell.id: _of_job(cell, job, number)
        for group, job in jobs_of(cells, jobs)
        for number, cell in enumerate(group)
        if cell is not None
    }
    return [
        _of_record(cell, store) or known.get(cell.id, CellStatus(cell, "not begun"))
        for cell in cells
    ]


def _of_record(cell: SweepCell, store: RecordStore) -> CellStatus | None:
    """Done, or failed where the record is damaged; None without one, or without its shifts."""
    stands = standing(store, cell, cell.shifts)
    if stands.to_run:
        return None
    return CellStatus(cell, "done" if stands.is_whole else "failed", stands.problem)


def _with_checkpoints(
    statuses: list[CellStatus], replicas: int, store: RecordStore
) -> list[CellStatus]:
    """The statuses, where cells of a program that has a checkpoint are begun."""
    missing = [one.cell for one in statuses if one.state == "not begun"]
    begun: dict[str, str] = {}
    for group in group_missing([one.cell for one in statuses], missing, replicas, store):
        path = checkpoint_of_group(group, store)
        try:
            written = datetime.datetime.fromtimestamp(path.stat().st_mtime)
        except OSError:  # there is none, or its program has just ended
            continue
        begun |= {cell.id: f"its checkpoint is of {written:%Y-%m-%d %H:%M:%S}" for cell in group}
    return [
        replace(one, state="begun", reason=begun[one.cell.id]) if one.cell.id in begun else one
        for one in statuses
    ]


def _of_job(cell: SweepCell, job: QueuedJob, number: int) -> CellStatus:
    """Where a cell without a record is, by the job that has it as request `number`."""
    if job.state == "cancelled":
        return CellStatus(cell, "not begun")
    if job.state != "done":
        return CellStatus(cell, job.state, job.reason, job.log)
    reasons: list[Any] = job.result or []
    reason = reasons[number] if number < len(reasons) else None
    if reason is None:  # it had a record, which was deleted since
        return CellStatus(cell, "not begun")
    return CellStatus(cell, "failed", str(reason), job.log)
