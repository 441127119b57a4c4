"""Running suites: the plans of every model on every board, what can't run, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..api.budget import Budget
from ..api.config import parse_config
from ..api.errors import (
    PLUGIN_FAILURES,
    IclbenchError,
    PluginError,
    UnsupportedError,
    UsageError,
    reason_of,
)
from ..api.record import Record
from ..api.spec import canonical_json
from ..api.suite import OF_BOARD, Suite, SuiteBoard
from ..files import read_toml
from ..plugins import host
from .plan import Plan, resolve


@dataclass(frozen=True)
class SuiteCell:
    """A model on a board of a suite: its plan, or why there is none.

    `unsupported` is why the model can't do the board, `error` why the request is wrong. A cell that
    is `extra` runs a solver that the board's score refers to.
    """

    board: SuiteBoard
    model: str
    plan: Plan | None = None
    unsupported: str | None = None
    error: IclbenchError | None = None
    extra: bool = False


def find_suite(name: str) -> Suite:
    """The suite of a plugin, or the one in a file NAME.toml; raises UsageError."""
    if name.endswith(".toml"):
        return _read(Path(name))
    plugin, target = host().target("suite", name)
    suite = _read(target) if isinstance(target, Path) else target
    if not isinstance(suite, Suite):
        raise PluginError(f"suite {name!r} of {plugin.label}: {suite!r} is not an iclbench.Suite")
    if suite.name != name:
        raise PluginError(f"suite {name!r} of {plugin.label} calls itself {suite.name!r}")
    return suite


def _read(path: Path) -> Suite:
    return parse_config(Suite, read_toml(path), str(path))


def resolve_suite(
    suite: Suite, models: Sequence[str], changes: Mapping[str, Mapping[str, Any]]
) -> list[SuiteCell]:
    """The cells of models on every board, after those of the solvers that the boards name.

    `changes` are the fields of a run that differ from the suite's, by model. Raises UsageError for
    a field that only the suite may set, and where `board_keys` does.
    """
    board_keys(suite)
    for fields in changes.values():
        for name in sorted(OF_BOARD & fields.keys()):
            raise UsageError(f"the suite {suite.name} sets {name}; it can't be changed")
    cells: dict[str, SuiteCell] = {}
    for board in suite.boards:
        for model in filter(None, (board.chance, board.reference)):
            _add(cells, replace(_cell(board, model, {}), extra=True))
        for model in models:
            _add(cells, _cell(board, model, changes.get(model, {})))
    return list(cells.values())


def require_solvers(suite: Suite, cells: Iterable[SuiteCell]) -> None:
    """Refuse a board that models would run on without a score, as its own solver can't.

    Raises UsageError with the board and the reason. A board on which nothing can run loses nothing,
    and a solver whose plugin is broken is no mistake of the suite's.
    """
    cells = list(cells)
    boards = {cell.board.name for cell in cells if cell.plan is not None and not cell.extra}
    for cell in cells:
        is_mistake = cell.plan is None and not isinstance(cell.error, PluginError)
        if cell.extra and is_mistake and cell.board.name in boards:
            raise UsageError(problem_of(suite, cell))


def boards_without_scores(suite: Suite) -> list[str]:
    """A line for each board whose chance solver can't be planned, with the reason."""
    cells = [_cell(board, board.chance, {}) for board in suite.boards]
    return [f"{problem_of(suite, cell)}; it has no scores" for cell in cells if cell.plan is None]


def problem_of(suite: Suite, cell: SuiteCell) -> str:
    """Why a cell has no plan, with its board."""
    board = f"board {cell.board.name}: "
    # Errors of its fields name the board themselves.
    error = str(cell.error).removeprefix(board)
    reason = f"{cell.model} can't do it: {cell.unsupported}" if cell.unsupported else error
    return f"suite {suite.name}: {board}{reason}"


def _add(cells: dict[str, SuiteCell], cell: SuiteCell) -> None:
    """Add a cell once; a model that is asked for is not extra."""
    key = cell.plan.spec.id if cell.plan else f"{cell.board.name} {cell.model}"
    if key not in cells or not cell.extra:
        cells[key] = cell


def _cell(board: SuiteBoard, model: str, changes: Mapping[str, Any]) -> SuiteCell:
    try:
        return SuiteCell(board, model, resolve(board.request(model, **changes)))
    except UnsupportedError as error:
        return SuiteCell(board, model, unsupported=_reason(error))
    except IclbenchError as error:
        return SuiteCell(board, model, error=error)
    except PLUGIN_FAILURES as error:
        # Its message alone would not tell which model or task raised it.
        problem = PluginError(f"{model} on {board.name} can't be planned: {reason_of(error)}")
        return SuiteCell(board, model, error=problem)


def _reason(error: UnsupportedError) -> str:
    """Why a model can't do a board, without the names that the message begins with."""
    return str(error).partition(": ")[2] or str(error)


def budgets_of(plans: Iterable[Plan]) -> list[Budget]:
    """What training these plans costs in all: the core time and the device time, if there is any.

    Plans whose steps are given have no budget.
    """
    return summed(
        Budget.parse(plan.spec.budget).times(len(plan.spec.seeds))
        for plan in plans
        if plan.spec.budget is not None
    )


def summed(budgets: Iterable[Budget]) -> list[Budget]:
    """The core time and the device time of these budgets, if there is any."""
    totals: dict[bool, Budget] = {}
    for cost in budgets:
        before = totals.get(cost.on_gpu, Budget(0, cost.on_gpu))
        totals[cost.on_gpu] = before._replace(seconds=before.seconds + cost.seconds)
    return list(totals.values())


def in_words(budget: Budget) -> str:
    """A budget and what it counts, such as `50m of core time`."""
    return f"{budget} of {budget.kind}"


def board_keys(suite: Suite) -> dict[str, str]:
    """What the records of each board have in common; see `record_key`.

    A board whose chance solver can't be planned is left out. Raises UsageError for two boards with
    the same prompts, since a record would be on both, and for a chance or reference that is no
    solver: whoever makes the suite could train it.
    """
    keys: dict[str, str] = {}
    for board in suite.boards:
        cell = _cell(board, board.chance, {})
        _require_solver(suite, cell, "chance")
        if board.reference is not None:
            _require_solver(suite, _cell(board, board.reference, {}), "reference")
        if cell.plan is not None:
            task, spec = cell.plan.task, cell.plan.spec
            args = {n: v for n, v in spec.task_args.items() if n not in task.training_only}
            prompts = (spec.eval_prompts, spec.eval_seed)
            key = _key(spec.task, spec.task_version, args, spec.dtype, prompts)
            for name, other in keys.items():
                if key == other:
                    raise UsageError(
                        f"suite {suite.name}: the boards {name} and {board.name} have the same "
                        "prompts; put them into two suites"
                    )
            keys[board.name] = key
    return keys


def _require_solver(suite: Suite, cell: SuiteCell, end: str) -> None:
    if cell.plan is not None and cell.plan.spec.origin != "solver":
        error = UsageError(f"{cell.model} is {cell.plan.spec.origin}: the {end} must be a solver")
        raise UsageError(problem_of(suite, replace(cell, error=error)))


def record_key(record: Record) -> str:
    """Records of one board have equal keys: the same task, arguments, dtype and prompts."""
    spec, main = record.spec, record.main
    prompts = (main.prompts, main.seed)
    return _key(spec.task, spec.task_version, main.task_args, spec.dtype, prompts)


def _key(
    task: str, version: int, args: Mapping[str, Any], dtype: str, prompts: tuple[int, int]
) -> str:
    return canonical_json([task, version, dict(args), dtype, *prompts])


def records_by_board(suite: Suite, records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records that are on each board of a suite, by the board's name."""
    by_key = {key: name for name, key in board_keys(suite).items()}
    members: dict[str, list[Record]] = {}
    for record in records:
        name = by_key.get(record_key(record))
        if name is not None:
            members.setdefault(name, []).append(record)
    return members


def records_of_solver(board: SuiteBoard, name: str, records: Iterable[Record]) -> list[Record]:
    """The records of a solver that the board names, as the suite runs it: with its own arguments.

    Where that is not known, since its plugin is not installed, all records of that name.
    """
    plan = _cell(board, name, {}).plan
    named = (record for record in records if record.spec.model == name)
    return [r for r in named if plan is None or r.spec.model_args == plan.spec.model_args]
