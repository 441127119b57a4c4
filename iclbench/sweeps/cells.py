"""Cells: the runs of a sweep file as plans, stage by stage.

A grid may need the weights that another leaves, so its cells are resolved once that one has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..api.config import parse_config
from ..api.errors import UsageError
from ..api.spec import RunSpec
from ..runs.plan import Plan, resolve
from ..runs.store import RecordStore
from .files import SweepFile, expand, reference_of

Reporter = Callable[[str], None]


@dataclass(frozen=True)
class Failure:
    """A cell without a record, and the reason."""

    command: str
    reason: str


class Cells:
    """The plans of a sweep so far, by run id, and the cells that can't be run."""

    def __init__(self, file: SweepFile, store: RecordStore) -> None:
        self.file, self.store = file, store
        self.failures: list[Failure] = []
        self.plans: dict[str, Plan] = {}
        #: The grid of each run, and its number within the grid.
        self._positions: dict[str, tuple[int, int]] = {}
        self._named: dict[str, Plan] = {}

    def resolve(self, grids: Iterable[Mapping[str, Any]]) -> list[Plan]:
        """The plans of these grids' cells, without those of earlier calls.

        A cell that can't be run is added to `failures`.
        """
        plans: dict[str, Plan] = {}
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
                position = (self.file.grid.index(dict(grid)), number)
                self._positions.setdefault(plan.spec.id, position)
                if plan.spec.id not in self.plans:
                    plans.setdefault(plan.spec.id, plan)
                if "name" in grid:
                    self._named[grid["name"]] = plan
        self.plans.update(plans)
        return list(plans.values())

    def in_order(self) -> list[Plan]:
        """All plans, in the order of the file's grids."""
        return sorted(self.plans.values(), key=lambda plan: self._positions[plan.spec.id])

    def _with_weights(self, grid: Mapping[str, Any]) -> dict[str, Any]:
        """The grid without its name, and with the file of the weights that it refers to."""
        content = {key: value for key, value in grid.items() if key != "name"}
        wanted = reference_of(grid)
        if wanted is None:
            return content
        plan = self._named.get(wanted)
        try:
            record = None if plan is None else self.store.find(plan.spec)
        except UsageError as error:
            raise _NoWeightsError(str(error)) from None
        if plan is None or record is None or record.weights_file is None:
            raise _NoWeightsError(f"the run {wanted!r} left no weights")
        path = str(self.store.objects.path(record.weights_file))
        return {key: path if value == f"@{wanted}" else value for key, value in content.items()}

    def _plan(self, request: RunSpec) -> Plan | None:
        try:
            return resolve(request)
        except UsageError as error:
            self._fail(request.command(), str(error))
        except Exception as error:  # of a plugin
            self._fail(request.command(), f"{type(error).__name__}: {error}")
        return None

    def _fail(self, command: str, reason: str) -> None:
        self.failures.append(Failure(command, reason))


class _NoWeightsError(UsageError):
    """The run whose weights a grid needs failed, or left none."""
