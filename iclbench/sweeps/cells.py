"""Cells: the runs of a sweep file, stage by stage.

A grid may need the weights that another leaves, so its cells are resolved once that one has run.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ..api.config import parse_config
from ..api.errors import PLUGIN_FAILURES, RecordError, UsageError, reason_of
from ..api.record import Record
from ..api.spec import RunSpec, canonical_json
from ..runs.code import installed_code, other_code
from ..runs.plan import Plan, resolve
from ..runs.reuse import asking_too, standing
from ..runs.shifts import asked_shifts
from ..runs.store import RecordStore, RunName
from .files import SweepFile, expand, reference_of
from .jobs import request_of

#: The most plans that a sweep keeps; each holds a task, a model's configuration, perhaps weights.
MOST_PLANS = 1000
#: Where `iclbench run` writes unless it is told.
RUN_OUT = Path("results")


@dataclass(frozen=True)
class Failure:
    """A cell without a record, and the reason; `log` is the path of its program's output.

    A grid that lacks its weights is one failure, which stands for all of its `runs`. The record of
    a cell may be there but `damaged`.
    """

    command: str
    reason: str
    log: str = ""
    runs: int = 1
    damaged: bool = False


def runs_of(failures: Iterable[Failure]) -> int:
    """How many runs these failures stand for."""
    return sum(failure.runs for failure in failures)


def by_reason(failures: Iterable[Failure]) -> list[str]:
    """The first failure of each reason, with its log, and how many more runs share it."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(failure.reason, []).append(failure)
    return [
        f"{same[0].command}: {reason}"
        + (f" ({runs_of(same) - 1} more like this)" if runs_of(same) > 1 else "")
        + (f"\n  log: {same[0].log}" if same[0].log else "")
        for reason, same in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class SweepCell:
    """A run of a sweep, small enough for sweeps of 100,000.

    One program can train the cells that share a `program`. `seeds` is the number of its models,
    `request` is the request in canonical JSON, and `position` its grid and its number there.
    `shifts` are the distributions that it is also evaluated under, which are no part of the run.
    """

    id: str
    model: str
    task: str
    program: str
    seeds: int
    request: str
    position: tuple[int, int]
    shifts: tuple[str, ...] = ()

    @classmethod
    def of(cls, plan: Plan, position: tuple[int, int]) -> SweepCell:
        """The cell of a plan."""
        spec = plan.spec
        run_id = spec.id
        return cls(
            id=run_id,
            model=spec.model,
            task=spec.task,
            program=plan.train_key if plan.recipe else run_id,
            seeds=len(spec.seeds),
            request=canonical_json(request_of(plan.request)),
            position=position,
            shifts=tuple(asked_shifts(plan)),
        )

    def command(self, out: Path) -> str:
        """The `iclbench run` command of this run, which writes its record to the folder `out`."""
        return command_into(out, parse_config(RunSpec, json.loads(self.request), "run"))


class Damaged(NamedTuple):
    """A cell whose record can't be used, and the reason."""

    cell: SweepCell
    reason: str


def command_into(out: Path, request: RunSpec) -> str:
    """The `iclbench run` command of a request, with the folder of its record."""
    command = request.command()
    return command if out == RUN_OUT else f"{command} --out {shlex.quote(str(out))}"


class Cells:
    """The cells of a sweep so far, by run id, and those that can't be run."""

    def __init__(
        self, file: SweepFile, store: RecordStore, plans: dict[str, Plan] | None = None
    ) -> None:
        """The first plans are added to `plans`, by the request of their cell."""
        self.file, self.store = file, store
        self.plans = {} if plans is None else plans
        self.failures: list[Failure] = []
        #: Grids whose weights a run of an earlier stage has still to leave, which is no failure.
        self.waiting: list[Failure] = []
        #: The ids of cells without a usable record, which are among the failures.
        self.failed: set[str] = set()
        self.cells: dict[str, SweepCell] = {}
        self._records: dict[str, Record] = {}
        self._named: dict[str, SweepCell] = {}
        self._waiting_names: set[str] = set()

    def resolve(self, grids: Iterable[Mapping[str, Any]]) -> list[SweepCell]:
        """The cells of these grids, without those of earlier calls that ask for no more shifts.

        A run of several grids is one cell, which is asked for the shifts of all. A cell that can't
        be run is added to `failures`, and a grid that can't yet to `waiting`.
        """
        new: dict[str, SweepCell] = {}
        for grid in grids:
            try:
                specs = expand(self._with_weights(grid), self.file.defaults)
            except _NoWeightsError as error:
                name = f"{grid.get('model')} from {reference_of(grid)}"
                content = {key: value for key, value in grid.items() if key != "name"}
                runs = sum(1 for _ in expand(content, self.file.defaults))
                failure = Failure(name, str(error), runs=runs)
                (self.waiting if error.waits else self.failures).append(failure)
                if error.waits and "name" in grid:
                    self._waiting_names.add(grid["name"])
                continue
            self._waiting_names.discard(grid.get("name", ""))
            index = self.file.grid.index(dict(grid))
            for number, spec in enumerate(specs):
                plan = self._plan(parse_config(RunSpec, spec, "sweep"))
                if plan is None:
                    continue
                cell = SweepCell.of(plan, (index, number))
                first = new.get(cell.id) or self.cells.get(cell.id)
                if first is None or not {*cell.shifts} <= {*first.shifts}:
                    cell = new[cell.id] = self._kept(plan, cell, first)
                if "name" in grid:
                    self._named[grid["name"]] = cell
        self.cells.update(new)
        return list(new.values())

    def _kept(self, plan: Plan, cell: SweepCell, first: SweepCell | None) -> SweepCell:
        """The cell, or the first one of its run asked for its shifts too; the plan is kept."""
        if first is not None:
            plan = asking_too(plan, first.shifts)
            cell = SweepCell.of(plan, first.position)
        if len(self.plans) < MOST_PLANS:
            self.plans[cell.request] = plan
        return cell

    def plan(self, cell: SweepCell) -> Plan:
        """The cell's plan: the one that is kept, or resolved again."""
        kept = self.plans.get(cell.request)
        return kept or resolve(parse_config(RunSpec, json.loads(cell.request), "sweep"))

    def find(self, spec: RunName) -> Record | None:
        """A cell's record, or None; it is read once. Raises RecordError when it is damaged."""
        if spec.id not in self._records:
            record = self.store.find(spec)
            if record is None:
                return None
            self._records[spec.id] = record
        return self._records[spec.id]

    def of_other_code(self, cells: Iterable[SweepCell]) -> str:
        """How many of the cells' records were made by other code, in parentheses; or nothing."""
        known = [record for cell in cells if (record := self._records.get(cell.id)) is not None]
        installed = installed_code() if known else {}
        count = sum(bool(other_code(record, installed)) for record in known)
        return f" ({count} by other code: `iclbench run --force` replaces one)" if count else ""

    def missing(
        self, cells: Iterable[SweepCell], *, shifts: bool = True
    ) -> tuple[list[SweepCell], list[Damaged]]:
        """Those without a record, or also without one of their `shifts`, and damaged records."""
        without, damaged = [], []
        for cell in cells:
            stands = standing(self, cell, cell.shifts if shifts else ())
            if stands.to_run:
                self._records.pop(cell.id, None)
                without.append(cell)
            elif stands.state == "damaged":
                damaged.append(Damaged(cell, stands.problem))
        return without, damaged

    def fail(
        self, cell: SweepCell, reason: str, log: str = "", *, damaged: bool = False
    ) -> Failure:
        """Add a cell to `failures`."""
        self.failed.add(cell.id)
        failure = Failure(cell.command(self.store.folder), reason, log, damaged=damaged)
        self.failures.append(failure)
        return failure

    def forgive_recorded(self) -> None:
        """Forget failures of cells that have a record now: another process may have run them."""
        for cell in [cell for cell in self.cells.values() if cell.id in self.failed]:
            if standing(self, cell, cell.shifts).is_whole:
                self.failed.discard(cell.id)
                command = cell.command(self.store.folder)
                self.failures = [f for f in self.failures if f.command != command]

    def fail_damaged(self, damaged: Iterable[Damaged]) -> list[Failure]:
        """Add cells whose record is damaged to `failures`."""
        return [self.fail(cell, reason, damaged=True) for cell, reason in damaged]

    def in_order(self) -> list[SweepCell]:
        """All cells, in the order of the file's grids."""
        return sorted(self.cells.values(), key=lambda cell: cell.position)

    def records(self) -> tuple[list[Record], list[Damaged]]:
        """The records of the cells that did not fail, in the order of the file's grids.

        Also those cells whose record is damaged.
        """
        records, damaged = [], []
        for cell in self.in_order():
            if cell.id in self.failed:
                continue
            try:
                record = self.find(cell)
            except RecordError as error:
                damaged.append(Damaged(cell, str(error)))
            else:
                records += [record] if record is not None else []
        return records, damaged

    def _with_weights(self, grid: Mapping[str, Any]) -> dict[str, Any]:
        """The grid without its name, and with the file of the weights that it refers to."""
        content = {key: value for key, value in grid.items() if key != "name"}
        wanted = reference_of(grid)
        if wanted is None:
            return content
        if wanted in self._waiting_names:
            raise _NoWeightsError(f"it waits for the run {wanted!r}, which waits too", waits=True)
        cell = self._named.get(wanted)
        try:
            record = None if cell is None else self.find(cell)
        except UsageError as error:
            raise _NoWeightsError(str(error)) from None
        if record is None and cell is not None and cell.id not in self.failed:
            raise _NoWeightsError(f"it waits for the weights of the run {wanted!r}", waits=True)
        if record is None or record.weights_file is None:
            raise _NoWeightsError(f"the run {wanted!r} left no weights")
        # Absolute, since programs may run in another working directory.
        path = str(self.store.objects.path(record.weights_file).absolute())
        return {key: path if value == f"@{wanted}" else value for key, value in content.items()}

    def _plan(self, request: RunSpec) -> Plan | None:
        try:
            plan = resolve(request)
            asked_shifts(plan)  # refuses those that the task does not define
            return plan
        except PLUGIN_FAILURES as error:
            command = command_into(self.store.folder, request)
            self.failures.append(Failure(command, reason_of(error)))
        return None


class _NoWeightsError(UsageError):
    """The run whose weights a grid needs failed, or left none, or `waits` to be run."""

    def __init__(self, message: str, *, waits: bool = False) -> None:
        super().__init__(message)
        self.waits = waits
