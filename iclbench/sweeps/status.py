"""The status of a sweep's cells, from the records and the queues of executors."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..api.executor import QueuedJob, QueueExecutor
from ..plugins import host
from ..runs.store import RecordStore
from .cells import Cell, Cells, Failure
from .files import QUICK, SweepSource, read_sweep_file, stages_of
from .programs import FOLDER, jobs_of, make_executor

State = Literal["done", "running", "waiting", "failed", "not submitted"]
#: Where a cell is, in the order in which states are shown.
STATES: tuple[State, ...] = ("done", "running", "waiting", "failed", "not submitted")


@dataclass(frozen=True)
class CellStatus:
    """Where a cell is. `reason` says why it waits or failed; `log` is its program's output."""

    cell: Cell
    state: State
    reason: str = ""
    log: str = ""


@dataclass
class SweepStatus:
    """Where every cell is. `unusable` can't be run, and `later` grids take weights of others."""

    cells: list[CellStatus] = field(default_factory=list)
    unusable: list[Failure] = field(default_factory=list)
    later: int = 0

    def count(self, state: State) -> int:
        """How many cells are in a state."""
        return sum(status.state == state for status in self.cells)


def sweep_status(
    file: SweepSource, *, out: str | Path | None = None, recipe: str = QUICK
) -> SweepStatus:
    """Where every cell of a sweep is; runs nothing. See `sweep` for the arguments.

    Raises UsageError if the file can't be used, and RunError if a queue doesn't answer.
    """
    sized = read_sweep_file(file).sized(recipe)
    folder = Path(out or sized.out)
    status, store = SweepStatus(), RecordStore(folder)
    cells = Cells(sized, store)
    stages = stages_of(sized)
    jobs = queued_jobs(folder)
    for number, stage in enumerate(stages):
        in_stage = _statuses(cells.resolve(stage), jobs, store)
        status.cells += in_stage
        if any(one.state != "done" for one in in_stage):
            status.later = sum(len(grids) for grids in stages[number + 1 :])
            break
    status.unusable = cells.failures
    return status


def queued_jobs(out: Path) -> list[QueuedJob]:
    """The jobs of every executor with a queue that has a folder in this output folder."""
    jobs: list[QueuedJob] = []
    names = {entry.name for _, entry in host().entries("executor")}
    for folder in sorted((out / FOLDER).glob("*/")):
        if folder.name in names:
            executor = make_executor(folder.name, {}, out)
            jobs += executor.queue() if isinstance(executor, QueueExecutor) else []
    return jobs


def _statuses(cells: list[Cell], jobs: list[QueuedJob], store: RecordStore) -> list[CellStatus]:
    known = {
        cell.id: _of_job(cell, job, number)
        for group, job in jobs_of(cells, jobs)
        for number, cell in enumerate(group)
        if cell is not None
    }
    return [
        CellStatus(cell, "done")
        if store.path(cell).exists()
        else known.get(cell.id, CellStatus(cell, "not submitted"))
        for cell in cells
    ]


def _of_job(cell: Cell, job: QueuedJob, number: int) -> CellStatus:
    """Where a cell without a record is, by the job that has it as request `number`."""
    if job.state == "cancelled":
        return CellStatus(cell, "not submitted")
    if job.state != "done":
        return CellStatus(cell, job.state, job.reason, job.log)
    reasons: list[Any] = job.result or []
    reason = reasons[number] if number < len(reasons) else None
    if reason is None:  # it had a record, which was deleted since
        return CellStatus(cell, "not submitted")
    return CellStatus(cell, "failed", str(reason), job.log)
