"""Run the cells of a sweep file: existing records are skipped, and a failure stops nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..api.config import parse_config
from ..api.errors import IclbenchError, Interrupted, UsageError, first_line
from ..api.executor import Executor
from ..api.record import Record
from ..api.spec import RunSpec
from ..devices import find_device
from ..files import require_writable
from ..plugins import host
from ..runs.plan import Plan, resolve
from ..runs.run import run_plans
from ..runs.settings import Settings
from ..runs.store import RecordStore
from ..training.gradients.choice import EngineName
from ..training.interruption import interruptible
from .cells import Cells, Failure, Reporter
from .files import QUICK, SweepFile, read_sweep_file, stages_of


@dataclass
class SweepResult:
    """The records of a sweep in the order of its grids, and the cells without one."""

    records: list[Record] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    #: How many of the records existed before.
    already_done: int = 0


def sweep(
    file: str | Path | Mapping[str, Any],
    *,
    out: str | Path | None = None,
    device: str = "auto",
    executor: str = "local",
    workers: int = 1,
    recipe: str = QUICK,
    engine: EngineName = "auto",
    report: Reporter = lambda line: None,
) -> SweepResult:
    """Run every cell of a sweep file (a path, or its content) that has no record yet.

    `recipe` is the size: `quick` is the file as it stands, others are named in its `recipes`.
    Cells that differ only in numbers that replicas can vary are trained as one program. `report`
    gets one line per stage and per finished program.

    Raises UsageError if the file itself can't be used; a cell that can't be run is a failure.
    A signal cancels what has not started and saves what runs: raises Interrupted, which says what
    remains.
    """
    sized = read_sweep_file(file).sized(recipe)
    settings = Settings(out=Path(out or sized.out), device=device, engine=engine)
    find_device(device)
    require_writable(settings.out)
    store = RecordStore(settings.out)
    cells = Cells(sized, store)
    programs = _Programs(
        executor=host().load("executor", executor, Executor)(),
        workers=workers,
        replicas=sized.replicas,
        settings=settings,
        store=store,
        report=report,
        failures=cells.failures,
    )
    stages = stages_of(sized)
    for number, stage in enumerate(stages, start=1):
        known = len(cells.failures)
        try:
            with interruptible():
                plans = cells.resolve(stage)
                for failure in cells.failures[known:]:
                    report(f"can't be run: {failure.command}: {failure.reason}")
                programs.run(plans)
        except Interrupted as error:
            what = _remaining(error, cells, number < len(stages))
            raise Interrupted(error.signal_number, what) from None
    return _result(cells, programs.already_done)


def _remaining(error: Interrupted, cells: Cells, later: bool) -> str:
    """What was saved, and how many runs have no record; `later` ones need their weights."""
    plans = list(cells.plans.values())
    if not plans:
        return str(error)
    missing = sum(not cells.store.path(plan.spec).exists() for plan in plans)
    more = ", and then those that need their weights" if later else ""
    return "; ".join(filter(None, [str(error), f"{missing} of {len(plans)} runs remain{more}"]))


def recorded(file: SweepFile, out: str | Path) -> SweepResult:
    """The records of a sweep in `out`; runs nothing, and cells without a record are failures.

    Raises UsageError if the file itself can't be used.
    """
    store = RecordStore(out)
    cells = Cells(file, store)
    for stage in stages_of(file):
        for plan in cells.resolve(stage):
            try:
                reason = None if store.find(plan.spec) else "it has no record"
            except UsageError as error:
                reason = str(error)
            if reason is not None:
                cells.failures.append(Failure(plan.request.command(), reason))
    return _result(cells, already_done=0)


def _result(cells: Cells, already_done: int) -> SweepResult:
    failed = {failure.command for failure in cells.failures}
    plans = [plan for plan in cells.in_order() if plan.request.command() not in failed]
    records = [cells.store.find(plan.spec) for plan in plans]
    return SweepResult(
        [record for record in records if record is not None], cells.failures, already_done
    )


@dataclass
class _Programs:
    """Runs plans as programs of at most `replicas` models, and collects the failures."""

    executor: Executor
    workers: int
    replicas: int
    settings: Settings
    store: RecordStore
    report: Reporter
    failures: list[Failure]
    already_done: int = 0

    def run(self, plans: list[Plan]) -> None:
        """Run the plans that have no record."""
        missing = [plan for plan in plans if self._is_missing(plan)]
        skipped = len(plans) - len(missing)
        self.report(f"{len(plans)} runs: {skipped} skipped, {len(missing)} to run")
        groups = _group(missing, self.replicas)
        jobs = [
            {
                "requests": [plan.request.model_dump(mode="json") for plan in group],
                "out": str(self.settings.out),
                "device": self.settings.device,
                "engine": self.settings.engine,
            }
            for group in groups
        ]
        with closing(self.executor.map(run_job, jobs, self.workers)) as outcomes:
            for finished, (index, outcome) in enumerate(outcomes, start=1):
                group = groups[index]
                failed = self._add_failures(group, outcome)
                names = ", ".join(f"{plan.spec.model} on {plan.spec.task}" for plan in group[:3])
                more = f" and {len(group) - 3} more" if len(group) > 3 else ""
                state = "failed" if failed else f"done{self._speedup(group)}"
                self.report(f"[{finished}/{len(jobs)}] {names}{more}: {state}")

    def _is_missing(self, plan: Plan) -> bool:
        try:
            record = self.store.find(plan.spec)
        except UsageError as error:
            self.failures.append(Failure(plan.request.command(), str(error)))
            self.report(f"can't be run: {plan.request.command()}: {error}")
            return False
        self.already_done += record is not None
        return record is None

    def _add_failures(self, group: list[Plan], outcome: Any) -> bool:
        """Add the failures of a program's cells; returns whether there are any."""
        if isinstance(outcome, BaseException):
            known = isinstance(outcome, IclbenchError)
            reason = str(outcome) if known else f"{type(outcome).__name__}: {outcome}"
            outcome = [reason] * len(group)
        failures = [
            Failure(plan.request.command(), reason)
            for plan, reason in zip(group, outcome, strict=True)
            if reason is not None
        ]
        self.failures += failures
        return bool(failures)

    def _speedup(self, group: list[Plan]) -> str:
        """What a program gained by training its models together, according to its first record."""
        record = self.store.find(group[0].spec)
        training = record.training if record is not None else None
        if training is None or training.speedup is None:
            return ""
        count = sum(len(plan.spec.seeds) for plan in group)
        return f", {count} models {training.speedup:.1f} times as fast as one by one"


def run_job(job: dict[str, Any]) -> list[str | None]:
    """Run one program's cells; returns the reason of each one's failure, or None.

    Reasons are text, which crosses processes. If the program fails, its cells are run one by one,
    so that a failure stays that of its cell. If memory is short, they are run in halves. Running a
    job again continues it: records and checkpoints are in its output folder. SIGTERM has it save a
    checkpoint and raise Interrupted.
    """
    requests = [parse_config(RunSpec, request, "run") for request in job["requests"]]
    settings = Settings(out=Path(job["out"]), device=job["device"], engine=job["engine"])
    with interruptible():
        return _run_together(requests, settings)


def _run_together(requests: list[RunSpec], settings: Settings) -> list[str | None]:
    parts = [requests[i : i + 1] for i in range(len(requests))]
    try:
        run_plans([resolve(request) for request in requests], settings)
        return [None] * len(requests)
    except torch.OutOfMemoryError as error:
        reason = first_line(error)
        half = (len(requests) + 1) // 2
        parts = [requests[:half], requests[half:]]
    except IclbenchError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if len(requests) == 1:
        return [reason]
    return [outcome for part in parts for outcome in _run_together(part, settings)]


def _group(plans: list[Plan], replicas: int) -> list[list[Plan]]:
    """The plans of each program, which differ only in what replicas can vary."""
    groups: dict[str, list[list[Plan]]] = {}
    for plan in plans:
        key = plan.train_key if plan.recipe else plan.spec.id
        parts = groups.setdefault(key, [[]])
        if sum(len(p.spec.seeds) for p in parts[-1]) + len(plan.spec.seeds) > replicas:
            parts.append([])
        parts[-1].append(plan)
    return [part for parts in groups.values() for part in parts if part]
