"""Sweeps: grids of runs from a TOML file; only what is missing is run, and a failure stops nothing.

Every list is an axis of the grid, but for `seeds`, which is one run's set of seeds, and `freeze`
and `metrics`; an argument that is itself a list is written as a list of lists.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from .config import Config, parse_config
from .devices import find_device
from .errors import IclbenchError, UsageError
from .executors import Executor
from .files import require_writable
from .leaderboards.figures import Figure
from .plans import Plan, resolve
from .plugins import host
from .records import Record, RecordStore
from .runner import Settings, run_plans
from .specs import RunSpec, parse_seeds

_WHOLE = {"seeds", "freeze", "metrics"}


class SweepFile(Config):
    """A sweep: settings, defaults for every run, and grids whose union is run."""

    out: str = "results"
    replicas: int = Field(32, ge=1, description="most models trained as one program")
    defaults: dict[str, Any] = {}
    grid: list[dict[str, Any]] = Field(min_length=1)
    figure: Figure | None = Field(None, description="a figure of the sweep's records")


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
    report: Reporter = lambda line: None,
) -> SweepResult:
    """Run every cell of a sweep file (a path, or its content) that has no record yet.

    Cells that differ in learning rate or seeds alone are trained as replicas of one program.
    Raises UsageError when the file itself can't be used; a cell that can't is a failure.
    """
    plan_file = read_sweep_file(file)
    settings = Settings(out=Path(out or plan_file.out), device=device)
    find_device(device)
    require_writable(settings.out)
    runner: Executor = host().load("executor", executor, Executor)()
    result = SweepResult()
    plans = _resolve_cells(plan_file, result)
    todo = _missing(plans, RecordStore(settings.out), result)
    for failure in result.failures:
        report(f"can't be run: {failure.command}: {failure.reason}")
    report(f"{len(plans)} runs: {result.already_done} done before, {len(todo)} to do")
    groups = _group(todo, plan_file.replicas)
    jobs = [
        {
            "requests": [plan.request.model_dump(mode="json") for plan in group],
            "out": str(settings.out),
            "device": device,
        }
        for group in groups
    ]
    for finished, (index, outcome) in enumerate(runner.map(run_job, jobs, workers), start=1):
        _take(groups[index], outcome, result)
        names = ", ".join(_name(plan) for plan in groups[index][:3])
        more = f" and {len(groups[index]) - 3} more" if len(groups[index]) > 3 else ""
        failed = isinstance(outcome, BaseException) or any(outcome)
        report(f"[{finished}/{len(jobs)}] {names}{more}: {'failed' if failed else 'done'}")
    store = RecordStore(settings.out)
    failed_commands = {failure.command for failure in result.failures}
    for plan in plans:
        record = None if plan.request.command() in failed_commands else store.find(plan.spec)
        if record is not None:
            result.records.append(record)
    return result


def run_job(job: dict[str, Any]) -> list[str | None]:
    """Run one program's cells; what went wrong with each, as text, so that it crosses processes.

    When the program fails, its cells are run one by one: a failure is its own cell's alone.
    """
    requests = [parse_config(RunSpec, request, "run") for request in job["requests"]]
    settings = Settings(out=Path(job["out"]), device=job["device"])
    together = _attempt(requests, settings)
    if together is None or len(requests) == 1:
        return [together] * len(requests)
    return [_attempt([request], settings) for request in requests]


def _attempt(requests: list[RunSpec], settings: Settings) -> str | None:
    try:
        run_plans([resolve(request) for request in requests], settings)
    except IclbenchError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


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


def _resolve_cells(file: SweepFile, result: SweepResult) -> list[Plan]:
    plans: dict[str, Plan] = {}
    for grid in file.grid:
        for cell in expand(grid, file.defaults):
            request = parse_config(RunSpec, cell, "sweep")
            try:
                plan = resolve(request)
            except UsageError as error:
                result.failures.append(Failure(request.command(), str(error)))
            except Exception as error:  # a plugin's own
                reason = f"{type(error).__name__}: {error}"
                result.failures.append(Failure(request.command(), reason))
            else:
                plans.setdefault(plan.spec.id, plan)
    return list(plans.values())


def _missing(plans: list[Plan], store: RecordStore, result: SweepResult) -> list[Plan]:
    todo = []
    for plan in plans:
        try:
            found = store.find(plan.spec)
        except UsageError as error:
            result.failures.append(Failure(plan.request.command(), str(error)))
            continue
        if found is None:
            todo.append(plan)
        else:
            result.already_done += 1
    return todo


def _group(plans: list[Plan], replicas: int) -> list[list[Plan]]:
    """Plans that one program can train, at most `replicas` models a program."""
    groups: dict[str, list[list[Plan]]] = {}
    for plan in plans:
        key = plan.spec.train_key() if plan.recipe else plan.spec.id
        parts = groups.setdefault(key, [[]])
        if sum(len(p.spec.seeds) for p in parts[-1]) + len(plan.spec.seeds) > replicas:
            parts.append([])
        parts[-1].append(plan)
    return [part for parts in groups.values() for part in parts if part]


def _take(group: list[Plan], outcome: Any, result: SweepResult) -> None:
    if isinstance(outcome, BaseException):
        outcome = [f"{type(outcome).__name__}: {outcome}"] * len(group)
    for plan, reason in zip(group, outcome, strict=True):
        if reason is not None:
            result.failures.append(Failure(plan.request.command(), reason))


def _name(plan: Plan) -> str:
    return f"{plan.spec.model} on {plan.spec.task}"
