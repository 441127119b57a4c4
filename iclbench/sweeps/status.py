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
from .grouped_cells import (
    checkpoint_of_group,
    group_missing,
    refused_checkpoint,
    unused_checkpoints,
)
from .programs import jobs_of

State = Literal["done", "running", "waiting", "failed", "begun", "not begun"]
#: Where a cell is, in the order in which states are shown.
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "begun", "not begun")


@dataclass(frozen=True)
class CellStatus:
    """Where a cell is. `reason` says why it waits or failed; `log` is its program's output.

    One that is begun has a checkpoint: a local process trains it, or has been stopped. One that
    failed may have one too, as `reason` then says.
    """

    cell: SweepCell
    state: State
    reason: str = ""
    log: str = ""


@dataclass
class SweepStatus:
    """Where every cell is. `unusable` can't be run, and `later` grids take weights of others.

    `unanswered` has a line for each queue that can't be asked: its programs seem not begun.
    `unused` has one for checkpoints that no program continues. `changed` says how many records were
    made by other code.
    """

    cells: list[CellStatus] = field(default_factory=list)
    unusable: list[Failure] = field(default_factory=list)
    later: int = 0
    unanswered: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    changed: str = ""

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
        statuses = _statuses(cells.resolve(stage), jobs, cells)
        groups = _to_run(statuses, sized.replicas, store)
        queued = _in_queue(statuses, jobs)
        unused = unused_checkpoints([one.cell for one in statuses], [*groups, *queued], store)
        status.unused += [unused] if unused else []
        status.cells += _with_checkpoints(statuses, groups, cells)
    status.changed = cells.of_other_code(one.cell for one in status.cells)
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


def _statuses(cells: list[SweepCell], jobs: list[QueuedJob], records: Cells) -> list[CellStatus]:
    known = {
        cell.id: _of_job(cell, job, number)
        for group, job in jobs_of(cells, jobs)
        for number, cell in enumerate(group)
        if cell is not None
    }
    return [
        _of_record(cell, records) or known.get(cell.id, CellStatus(cell, "not begun"))
        for cell in cells
    ]


def _of_record(cell: SweepCell, records: Cells) -> CellStatus | None:
    """Done, or failed where the record is damaged; None without one, or without its shifts."""
    stands = standing(records, cell, cell.shifts)
    if stands.to_run:
        return None
    return CellStatus(cell, "done" if stands.is_whole else "failed", stands.problem)


def _to_run(statuses: list[CellStatus], replicas: int, store: RecordStore) -> list[list[SweepCell]]:
    """The programs that a run would start: of what has not begun or failed, if it has no record."""
    missing = [
        one.cell
        for one in statuses
        if one.state in {"not begun", "failed"} and not store.path(one.cell).exists()
    ]
    return group_missing([one.cell for one in statuses], missing, replicas, store)


def _in_queue(statuses: list[CellStatus], jobs: list[QueuedJob]) -> list[list[SweepCell]]:
    """The cells of each program that waits in a queue or runs."""
    cells = [one.cell for one in statuses if one.state in {"waiting", "running"}]
    active = [job for job in jobs if job.active]
    return [[cell for cell in group if cell is not None] for group, _ in jobs_of(cells, active)]


def _with_checkpoints(
    statuses: list[CellStatus], groups: list[list[SweepCell]], cells: Cells
) -> list[CellStatus]:
    """The statuses, where cells of a program that has a checkpoint are begun."""
    begun: dict[str, str] = {}
    for group in groups:
        path = checkpoint_of_group(group, cells.store)
        try:
            written = datetime.datetime.fromtimestamp(path.stat().st_mtime)
        except OSError:  # there is none, or its program has just ended
            continue
        reason = f"its checkpoint is of {written:%Y-%m-%d %H:%M:%S}"
        if refused := refused_checkpoint(group, cells):
            reason = refused
        begun |= {cell.id: reason for cell in group}
    return [_begun(one, begun[one.cell.id]) if one.cell.id in begun else one for one in statuses]


def _begun(status: CellStatus, reason: str) -> CellStatus:
    """The status of a cell whose program has a checkpoint."""
    if status.state == "failed":
        more = "" if reason in status.reason else f"; {reason}"
        return replace(status, reason=f"{status.reason}{more}")
    return replace(status, state="begun", reason=reason)


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
