"""Run the cells of a sweep file: existing records are skipped, and a failure stops nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..api.errors import Interrupted, UsageError, unknown
from ..api.executor import Executor, QueueExecutor
from ..api.record import Record
from ..console import Reporter
from ..files import path_of, require_writable
from ..runs.plan import Plan
from ..runs.settings import Settings
from ..runs.store import RecordStore, require_results
from ..training.gradients.choice import EngineName
from ..training.interruption import interruptible
from .cells import Cells, Failure, SweepCell, by_reason, runs_of
from .executor import usable_executor
from .files import QUICK, SweepFile, SweepSource, errors_of, read_sweep_file, stages_of
from .grouped_cells import group_missing
from .jobs import plans_at_hand
from .metric_names import require_metrics
from .programs import Programs


@dataclass
class SweepResult:
    """The records of a sweep in the order of its grids, and the cells without one."""

    records: list[Record] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    #: How many of the records existed before.
    already_done: int = 0

    @property
    def missing(self) -> int:
        """How many runs have no record: a failure may stand for all runs of a grid."""
        return runs_of(self.failures)

    @property
    def damaged(self) -> list[str]:
        """A line for each damaged record, which names it."""
        return [failure.reason for failure in self.failures if failure.damaged]


class HowToRun(TypedDict, total=False):
    """Keyword arguments that are those of `Settings`."""

    device: str
    engine: EngineName
    checkpoint_seconds: float
    eval_batch: int | None


def sweep(
    file: SweepSource,
    *,
    out: str | Path | None = None,
    executor: str | Executor = "local",
    executor_args: Mapping[str, Any] | None = None,
    workers: int | None = None,
    size: str = QUICK,
    report: Reporter = lambda line: None,
    **how: Unpack[HowToRun],
) -> SweepResult:
    """Run every cell of a sweep file (a path, or its content) that has no record yet.

    `size` is one of the file's `sizes`, or `quick`, the file as it stands.
    Cells that differ only in numbers that replicas can vary are trained as one program. `report`
    gets one line per stage and per finished program. By default there are as many `workers` as the
    executor says; `executor_args` are those of an executor that is given by its name. Processes of
    workers import the script that calls this: call it below `if __name__ == "__main__":`.

    Raises UsageError if the file itself can't be used; a cell that can't be run is a failure.
    A signal cancels what has not started and saves what runs: raises Interrupted, which says what
    remains.
    """
    with plans_at_hand() as plans:
        run = _Sweep(file, out, size, plans, how)
        programs = run.programs(executor, executor_args, workers, report)
        for number, stage in enumerate(run.stages, start=1):
            try:
                with interruptible():
                    programs.run(run.resolve(stage, report))
            except Interrupted as error:
                what = _remaining(error, run.cells, number < len(run.stages))
                raise Interrupted(error.signal_number, what) from None
    return _result(run.cells, programs.already_done)


def submit_sweep(
    file: SweepSource,
    *,
    executor: str | Executor,
    executor_args: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    workers: int | None = None,
    size: str = QUICK,
    report: Reporter = lambda line: None,
    **how: Unpack[HowToRun],
) -> SweepResult:
    """Submit the cells that have neither a record nor a job, and return at once; see `sweep`.

    Grids that take weights of runs that are not done yet are left out.
    Raises UsageError for an executor without a queue.
    """
    run = _Sweep(file, out, size, {}, how)
    programs = run.programs(executor, executor_args, workers, report)
    if not isinstance(programs.executor, QueueExecutor):
        raise UsageError(f"executor {programs.executor.name} has no queue to submit programs to")
    for number, stage in enumerate(run.stages, start=1):
        pending = programs.submit(run.resolve(stage, report))
        if pending and number < len(run.stages):
            report("grids that take weights of these runs can be submitted once they are done")
            break
    return _result(run.cells, programs.already_done)


def plan_sweep(
    file: SweepSource,
    *,
    out: str | Path | None = None,
) -> tuple[Cells, list[list[SweepCell]]]:
    """The cells of a sweep, and the programs of those without a record; runs nothing.

    Grids that take the weights of a run without a record are among the cells' `waiting`, and cells
    whose record is damaged among their `failures`. Raises UsageError as `sweep`.
    """
    run = _Sweep(file, out, QUICK, {}, {})
    cells = [cell for stage in run.stages for cell in run.cells.resolve(stage)]
    run.require_described(cells)
    missing, damaged = run.cells.missing(cells)
    run.cells.fail_damaged(damaged)
    return run.cells, group_missing(cells, missing, run.file.replicas, run.cells.store)


class _Sweep:
    """A sweep file at its size, with its settings, stages and cells."""

    def __init__(
        self,
        file: SweepSource,
        out: str | Path | None,
        size: str,
        plans: dict[str, Plan],
        how: HowToRun,
    ) -> None:
        for name in how:
            if name not in HowToRun.__annotations__:
                raise unknown("argument", name, HowToRun.__annotations__)
        self.file = read_sweep_file(file).sized(size)
        self.settings = Settings(out=path_of(out or self.file.out), **how)
        self.stages = stages_of(self.file)
        self.cells = Cells(self.file, RecordStore(self.settings.out), plans)

    def programs(
        self,
        executor: str | Executor,
        args: Mapping[str, Any] | None,
        workers: int | None,
        report: Reporter,
    ) -> Programs:
        """What runs the cells.

        Raises UsageError for an executor, a device or a folder that can't be used.
        """
        out, device = self.settings.out, self.settings.device
        usable, workers = usable_executor(executor, args, out=out, device=device, workers=workers)
        require_results(out)
        require_writable(out)
        return Programs(
            executor=usable,
            workers=workers,
            replicas=self.file.replicas,
            settings=self.settings,
            cells=self.cells,
            report=report,
        )

    def resolve(self, stage: list[dict[str, Any]], report: Reporter) -> list[SweepCell]:
        """The cells of a stage; reports those that can't be run.

        Raises UsageError as `require_described`, before any runs.
        """
        known = len(self.cells.failures)
        cells = self.cells.resolve(stage)
        for line in by_reason(self.cells.failures[known:]):
            report(f"can't be run: {line}")
        self.require_described(cells)
        return cells

    def require_described(self, cells: list[SweepCell]) -> None:
        """Raise UsageError for what the figure or the table names and none of the cells has.

        Nothing is refused where later cells, or some without a plan at hand, may have it.
        """
        plans = self.cells.plans
        if len(self.stages) != 1 or len(plans) != len(cells):
            return
        if self.file.figure is not None:
            with errors_of(self.file.source):
                self.file.figure.require_arguments(plan.spec for plan in plans.values())
        require_metrics(self.file, plans.values())


def _remaining(error: Interrupted, cells: Cells, later: bool) -> str:
    """What was saved, and how many runs have no record; `later` ones need their weights."""
    known = list(cells.cells.values())
    if not known:
        return str(error)
    missing, _ = cells.missing(known)
    more = ", plus those that need their weights" if later else ""
    remain = f"{len(missing)} of {len(known)} runs remain{more}"
    return "; ".join(filter(None, [str(error), *getattr(error, "__notes__", []), remain]))


def recorded(file: SweepFile, out: str | Path) -> SweepResult:
    """The records of a sweep in `out`; runs nothing, and cells without a record are failures.

    Raises UsageError if the file itself can't be used.
    """
    cells = Cells(file, RecordStore(out))
    for stage in stages_of(file):
        missing, damaged = cells.missing(cells.resolve(stage), shifts=False)
        cells.fail_damaged(damaged)
        for cell in missing:
            cells.fail(cell, "it has no record")
    return _result(cells, already_done=0)


def _result(cells: Cells, already_done: int) -> SweepResult:
    records, damaged = cells.records()
    cells.fail_damaged(damaged)
    # All has been run: what still waits never gets its weights.
    return SweepResult(records, [*cells.failures, *cells.waiting], already_done)
