"""Sweeps: grids of runs from a TOML file; only what is missing is run, and a failure stops nothing.

Every list is an axis of the grid, but for `seeds`, which is one run's set of seeds, and `freeze`
and `metrics`; an argument that is itself a list is written as a list of lists. A grid of one run
may have a `name`, and a later one `init = "@name"` or `weights = "@name"`: the weights it left.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import Field, model_validator

from .config import Config, parse_config
from .devices import find_device
from .errors import IclbenchError, UsageError, unknown
from .executors import Executor
from .files import require_writable
from .leaderboards.figures import Figure
from .leaderboards.study import StudyTable
from .plans import Plan, resolve
from .plugins import host
from .records import Record, RecordStore
from .runner import Settings, run_plans
from .specs import RunSpec, parse_seeds
from .training.engine import EngineName, first_line

_WHOLE = {"seeds", "freeze", "metrics"}


class Size(Config):
    """Another size of a sweep: what it says takes the place of what the file says."""

    out: str | None = Field(None, description="default: the file's, with the size's name")
    title: str | None = Field(None, description="above the figure")
    defaults: dict[str, Any] = Field({}, description="fields of a run, each taken whole")
    grid: list[dict[str, Any]] = Field(
        [], description="one table a grid of the file, in order; fields of a run, each taken whole"
    )


class SweepFile(Config):
    """A sweep: settings, defaults for every run, and grids whose union is run."""

    out: str = "results"
    replicas: int = Field(32, ge=1, description="most models trained as one program")
    defaults: dict[str, Any] = {}
    grid: list[dict[str, Any]] = Field(min_length=1)
    figure: Figure | None = Field(None, description="a figure of the sweep's records")
    table: StudyTable | None = Field(None, description="a table of the sweep's records")
    recipes: dict[str, Size] = Field({}, description="other sizes by name; the file is `quick`")

    @model_validator(mode="after")
    def _sizes_fit(self) -> SweepFile:
        for name, size in self.recipes.items():
            if len(size.grid) not in {0, len(self.grid)}:
                raise ValueError(
                    f"recipes.{name} has {len(size.grid)} grids, the file {len(self.grid)}"
                )
        return self

    def sized(self, name: str) -> SweepFile:
        """The sweep at the size of that name; raises UsageError where it has none."""
        if name == QUICK and QUICK not in self.recipes:
            return self
        if name not in self.recipes:
            raise unknown("size of this sweep", name, [QUICK, *self.recipes])
        size = self.recipes[name]
        grids = size.grid or [{} for _ in self.grid]
        titled = size.title is not None and self.figure is not None
        return self.model_copy(
            update={
                "out": size.out or f"{self.out}-{name}",
                "defaults": {**self.defaults, **size.defaults},
                "grid": [{**a, **b} for a, b in zip(self.grid, grids, strict=True)],
                "figure": self.figure.model_copy(update={"title": size.title})
                if titled and self.figure is not None
                else self.figure,
                "recipes": {},
            }
        )


#: The size that a sweep file itself describes.
QUICK = "quick"


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
    stages = _stages(plan_file)
    going = _Sweep(plan_file, settings, runner, workers, report)
    for stage in stages:
        going.run(going.resolve(stage))
    return going.finish()


def recorded(file: SweepFile, out: str | Path) -> SweepResult:
    """The records that a sweep has left in `out`; the cells without one are its failures.

    Nothing is run. Raises UsageError when the file itself can't be used.
    """
    going = _Sweep(file, Settings(out=Path(out)), None, 1, lambda line: None)
    for stage in _stages(file):
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
                self._fail(f"{grid.get('model')} from {_reference(grid)}", str(error))
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
        wanted = _reference(grid)
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


def expand(grid: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The specs of one grid: the product of every list in it."""
    merged: dict[str, Any] = {**defaults}
    for name, value in grid.items():
        base = merged.get(name)
        both = isinstance(base, dict) and isinstance(value, dict)
        merged[name] = {**base, **value} if both else value  # type: ignore[dict-item]
    axes: list[list[tuple[str, str | None, Any]]] = []
    for name, value in merged.items():
        if isinstance(value, dict):
            axes += [[(name, key, v) for v in _axis(values)] for key, values in value.items()]
        else:
            axes.append([(name, None, v) for v in ([value] if name in _WHOLE else _axis(value))])
    for cell in itertools.product(*axes):
        spec: dict[str, Any] = {}
        for name, key, value in cell:
            if key is None:
                spec[name] = value
            else:
                spec.setdefault(name, {})[key] = value
        if isinstance(spec.get("seeds"), str):
            spec["seeds"] = parse_seeds(spec["seeds"])
        yield spec


def _axis(value: Any) -> list[Any]:
    if value == []:
        raise UsageError("sweep: an empty list makes an empty grid")
    return value if isinstance(value, list) else [value]


def read_sweep_file(file: str | Path | Mapping[str, Any]) -> SweepFile:
    """The sweep file at a path, or its content; raises UsageError when it is none."""
    if isinstance(file, Mapping):
        return parse_config(SweepFile, file, "sweep")
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from None
    return parse_config(SweepFile, content, str(file))


def _stages(file: SweepFile) -> list[list[dict[str, Any]]]:
    """The grids in an order in which each follows the one whose weights it takes.

    Raises UsageError for what can be told before anything runs.
    """
    if _reference(file.defaults) is not None:
        raise UsageError("sweep: defaults can't take the weights of one run")
    stages: list[list[dict[str, Any]]] = [[]]
    names: dict[str, int] = {}
    for grid in file.grid:
        wanted = _reference(grid)
        if wanted is not None and wanted not in names:
            raise UsageError(f"sweep: no grid before this one has the name {wanted!r}")
        stage = 0 if wanted is None else names[wanted] + 1
        # The weights' path is known later; all else can be checked now.
        cells = list(expand({k: v for k, v in grid.items() if k != "name"}, file.defaults))
        for cell in cells:
            parse_config(RunSpec, cell, "sweep")
        if "name" in grid:
            name = grid["name"]
            if not isinstance(name, str):
                raise UsageError(f"sweep: the name of a grid must be text, not {name!r}")
            if name in names:
                raise UsageError(f"sweep: two grids have the name {name!r}")
            if len(cells) != 1:
                raise UsageError(f"sweep: {name!r} names {len(cells)} runs, not one")
            names[name] = stage
        while len(stages) <= stage:
            stages.append([])
        stages[stage].append(grid)
    return stages


def _reference(grid: Mapping[str, Any]) -> str | None:
    """The name whose weights a grid takes; raises UsageError for several at once."""
    for option in ("init", "weights"):
        value = grid.get(option)
        several = value if isinstance(value, list) else []
        if any(isinstance(v, str) and v.startswith("@") for v in several):
            raise UsageError(f"sweep: {option} = {value} takes several weights; write a grid each")
        if isinstance(value, str) and value.startswith("@"):
            return value[1:]
    return None


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
