"""Sweeps: the grids of a sweep file; only what is missing is run, and a failure stops nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..api.config import parse_config
from ..api.errors import IclbenchError, UsageError, first_line
from ..api.executor import Executor
from ..api.record import Record
from ..api.spec import RunSpec
from ..devices import find_device
from ..files import require_writable
from ..plugins import host
from ..runs.plan import Plan, resolve
from ..runs.run import Settings, run_plans
from ..runs.store import RecordStore
from ..training.gradients.choice import EngineName
from .files import QUICK, SweepFile, expand, read_sweep_file, reference_of, stages_of


@dataclass(frozen=True)
class Failure:
    """A cell that has no record, and why."""

    command: str
    reason: str


@dataclass
class SweepResult:
    """What a sweep leaves: records in the grid's order, and the cells that failed."""

    records: list[Record] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    already_done: int = 0


Reporter = Callable[[str], None]


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

    Cells that differ in numbers that replicas carry are trained as one program.
    Raises UsageError when the file itself can't be used; a cell that can't is a failure.
    """
    plan_file = read_sweep_file(file).sized(recipe)
    settings = Settings(out=Path(out or plan_file.out), device=device, engine=engine)
    find_device(device)
    require_writable(settings.out)
    runner: Executor = host().load("executor", executor, Executor)()
    stages = stages_of(plan_file)
    going = _Sweep(plan_file, settings, runner, workers, report)
    for stage in stages:
        going.run(going.resolve(stage))
    return going.finish()


def recorded(file: SweepFile, out: str | Path) -> SweepResult:
    """The records that a sweep has left in `out`; the cells without one are its failures.

    Nothing is run. Raises UsageError when the file itself can't be used.
    """
    going = _Sweep(file, Settings(out=Path(out)), None, 1, lambda line: None)
    for stage in stages_of(file):
        for plan in going.resolve(stage):
            if going.store.find(plan.spec) is None:
                going.result.failures.append(Failure(plan.request.command(), "it has no record"))
    return going.finish()


class _Sweep:
    """A sweep on its way: what was run so far, and where the next stage finds its weights."""

    def __init__(
        self,
        file: SweepFile,
        settings: Settings,
        runner: Executor | None,
        workers: int,
        report: Reporter,
    ) -> None:
        self.file, self.settings = file, settings
        self.runner, self.workers, self.report = runner, workers, report
        self.store = RecordStore(settings.out)
        self.result = SweepResult()
        self.plans: dict[str, Plan] = {}
        self.places: dict[str, tuple[int, int]] = {}
        self.named: dict[str, Plan] = {}

    def resolve(self, grids: list[dict[str, Any]]) -> list[Plan]:
        """The plans of these grids' cells that no stage before had."""
        found: dict[str, Plan] = {}
        for grid in grids:
            try:
                cells = list(expand(self._with_weights(grid), self.file.defaults))
            except _NoWeightsError as error:
                self._fail(f"{grid.get('model')} from {reference_of(grid)}", str(error))
                continue
            for number, cell in enumerate(cells):
                plan = self._plan(parse_config(RunSpec, cell, "sweep"))
                if plan is None:
                    continue
                self.places.setdefault(plan.spec.id, (self.file.grid.index(grid), number))
                if plan.spec.id not in self.plans:
                    found.setdefault(plan.spec.id, plan)
                if "name" in grid:
                    self.named[grid["name"]] = plan
        self.plans.update(found)
        return list(found.values())

    def run(self, plans: list[Plan]) -> None:
        """Run those of the plans that have no record."""
        todo = [plan for plan in plans if self._is_missing(plan)]
        done = len(plans) - len(todo)
        self.report(f"{len(plans)} runs: {done} done before, {len(todo)} to do")
        groups = _group(todo, self.file.replicas)
        jobs = [
            {
                "requests": [plan.request.model_dump(mode="json") for plan in group],
                "out": str(self.settings.out),
                "device": self.settings.device,
                "engine": self.settings.engine,
            }
            for group in groups
        ]
        if self.runner is None:
            raise RuntimeError("a sweep that only finds records runs nothing")
        outcomes = self.runner.map(run_job, jobs, self.workers)
        for finished, (index, outcome) in enumerate(outcomes, start=1):
            self._take(groups[index], outcome)
            names = ", ".join(_name(plan) for plan in groups[index][:3])
            more = f" and {len(groups[index]) - 3} more" if len(groups[index]) > 3 else ""
            failed = isinstance(outcome, BaseException) or any(outcome)
            end = "failed" if failed else "done"
            faster = "" if failed else self._speedup(groups[index])
            self.report(f"[{finished}/{len(jobs)}] {names}{more}: {end}{faster}")

    def _speedup(self, group: list[Plan]) -> str:
        """What training a program's models together gained, as its records say."""
        record = self.store.find(group[0].spec)
        training = record.training if record is not None else None
        if training is None or training.speedup is None:
            return ""
        count = sum(len(plan.spec.seeds) for plan in group)
        return f", {count} models {training.speedup:.1f} times as fast as one by one"

    def finish(self) -> SweepResult:
        """The records, in the order of the grids."""
        failed = {failure.command for failure in self.result.failures}
        for plan in sorted(self.plans.values(), key=lambda plan: self.places[plan.spec.id]):
            if plan.request.command() not in failed:
                record = self.store.find(plan.spec)
                if record is not None:
                    self.result.records.append(record)
        return self.result

    def _with_weights(self, grid: Mapping[str, Any]) -> dict[str, Any]:
        """The grid without its name, and with the file of the weights that it refers to."""
        content = {key: value for key, value in grid.items() if key != "name"}
        wanted = reference_of(grid)
        if wanted is None:
            return content
        plan = self.named.get(wanted)
        try:
            record = None if plan is None else self.store.find(plan.spec)
        except UsageError as error:
            raise _NoWeightsError(str(error)) from None
        if plan is None or record is None or record.weights is None:
            raise _NoWeightsError(f"the run {wanted!r} left no weights")
        path = str(self.store.path(plan.spec).parent / record.weights.file)
        return {key: path if value == f"@{wanted}" else value for key, value in content.items()}

    def _plan(self, request: RunSpec) -> Plan | None:
        try:
            return resolve(request)
        except UsageError as error:
            self._fail(request.command(), str(error))
        except Exception as error:  # a plugin's own
            self._fail(request.command(), f"{type(error).__name__}: {error}")
        return None

    def _is_missing(self, plan: Plan) -> bool:
        try:
            found = self.store.find(plan.spec)
        except UsageError as error:
            self._fail(plan.request.command(), str(error))
            return False
        self.result.already_done += found is not None
        return found is None

    def _take(self, group: list[Plan], outcome: Any) -> None:
        if isinstance(outcome, BaseException):
            outcome = [f"{type(outcome).__name__}: {outcome}"] * len(group)
        for plan, reason in zip(group, outcome, strict=True):
            if reason is not None:
                self.result.failures.append(Failure(plan.request.command(), reason))

    def _fail(self, command: str, reason: str) -> None:
        self.result.failures.append(Failure(command, reason))
        self.report(f"can't be run: {command}: {reason}")


class _NoWeightsError(UsageError):
    """The run whose weights are asked for failed, or trained nothing."""


def run_job(job: dict[str, Any]) -> list[str | None]:
    """Run one program's cells; what went wrong with each, as text, so that it crosses processes.

    When the program fails, its cells are run one by one: a failure is its own cell's alone. When
    memory was short, they are run in halves.
    """
    requests = [parse_config(RunSpec, request, "run") for request in job["requests"]]
    settings = Settings(out=Path(job["out"]), device=job["device"], engine=job["engine"])
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
    """Plans that one program can train, at most `replicas` models a program."""
    groups: dict[str, list[list[Plan]]] = {}
    for plan in plans:
        key = plan.train_key if plan.recipe else plan.spec.id
        parts = groups.setdefault(key, [[]])
        if sum(len(p.spec.seeds) for p in parts[-1]) + len(plan.spec.seeds) > replicas:
            parts.append([])
        parts[-1].append(plan)
    return [part for parts in groups.values() for part in parts if part]


def _name(plan: Plan) -> str:
    return f"{plan.spec.model} on {plan.spec.task}"
