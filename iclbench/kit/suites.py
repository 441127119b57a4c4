"""The conformance check of suites; it raises ConformanceError."""

from __future__ import annotations

from typing import Any

from ..api.architecture import Architecture
from ..api.config import parse_config
from ..api.errors import PLUGIN_FAILURES, UsageError, unknown
from ..api.spec import RunSpec
from ..api.suite import Suite, SuiteBoard
from ..api.task import Task
from ..plugins import host
from ..runs.checks import expect
from ..runs.shifts import asked_shifts
from ..runs.suites import resolve_suite
from .trials import NotCheckedError


def check_suite(suite: Suite) -> None:
    """Every board names a task, a recipe, shifts and solvers that exist, with valid arguments.

    Raises NotCheckedError where a task lacks its data.
    """
    for board in suite.boards:
        try:
            for solver in filter(None, (board.chance, board.reference)):
                _check_names(board.request(solver))
        except UsageError as error:
            expect(False, f"board {board.name}: {error}")
    lacking = []
    for cell in resolve_suite(suite, [], {}):
        label = f"board {cell.board.name} with {cell.model}"
        expect(cell.unsupported is None, f"{label}: {cell.unsupported}")
        if cell.plan is not None:
            try:
                asked_shifts(cell.plan)
            except UsageError as error:
                expect(False, f"{label}: {error}")
        if cell.error is not None:
            # Only data that a task lacks are no mistake of the suite.
            expect(not _can_be_built(cell.board), f"{label}: {cell.error}")
            lacking.append(f"{label}: {cell.error}")
    if lacking:
        raise NotCheckedError("; ".join(lacking))


def _check_names(request: RunSpec) -> None:
    """Raise UsageError for what a run's names and the task's arguments alone show to be wrong."""
    task: type[Task[Any]] = host().load("task", request.task, Task)
    parse_config(task.Config, request.task_args, f"task {request.task}")
    host().load("model", request.model, Architecture)
    known = [*task.recipes, *(entry.name for _, entry in host().entries("recipe"))]
    if request.recipe not in known:
        raise unknown("recipe", request.recipe, known)


def _can_be_built(board: SuiteBoard) -> bool:
    """Whether the task of a board can be built with its arguments."""
    request = board.request(board.chance)
    task_class: type[Task[Any]] = host().load("task", request.task, Task)
    try:
        config = parse_config(task_class.Config, request.task_args, f"task {request.task}")
        _ = task_class(config).signature
    except PLUGIN_FAILURES:
        return False
    return True
