"""Suites on the command line: what `run --suite` prints, and `iclbench leaderboard suite`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UnsupportedError, UsageError, reason_of
from ..console import counted
from ..display.table import Output
from .common import (
    Columns,
    Sort,
    Style,
    complete_names,
    end_with,
    records_folders,
    show_table,
)
from .paths import Folders, SameFolder

if TYPE_CHECKING:
    from ..api.record import Record
    from ..api.suite import Suite
    from ..leaderboards.suite_score import SuiteTable
    from ..runs.plan import Plan
    from ..runs.suites import SuiteCell
    from .tuning import Preparation


def _require_shifts(plans: Sequence[Plan]) -> None:
    """Raise UsageError for shifts that no board defines; one that lacks them fails alone."""
    from ..runs.shifts import asked_shifts

    problems = []
    for plan in plans:
        try:
            asked_shifts(plan)
        except UsageError as error:
            problems.append(error)
    if problems and len(problems) == len(plans):
        raise problems[0]


class SuiteRun:
    """Models on the boards of a suite: the plans, what they cost, and the scores afterwards."""

    def __init__(
        self,
        name: str,
        models: list[str],
        changes: Mapping[str, Mapping[str, Any]],
        prepare: Preparation,
    ) -> None:
        """Resolve every cell.

        Raises UsageError if none of the models' can be run, or if a board has no solver to score
        them by.
        """
        from dataclasses import replace

        from ..runs.suites import find_suite, problem_of, require_solvers, resolve_suite

        self.suite, self.prepare = find_suite(name), prepare
        self.cells = [
            cell
            if cell.plan is None
            else replace(cell, plan=prepare.with_tuning(cell.plan, cell.board.name))
            for cell in resolve_suite(self.suite, models, changes)
        ]
        _require_shifts([plan for _, plan in self.named])
        asked = [cell for cell in self.cells if not cell.extra]
        prepare.require_used([cell.plan for cell in asked if cell.plan is not None])
        require_solvers(self.suite, self.cells)
        failed = [cell for cell in asked if cell.error is not None]
        if failed and len(failed) == len(asked):
            raise UsageError(problem_of(self.suite, failed[0])) from failed[0].error

    @property
    def named(self) -> list[tuple[str, Plan]]:
        """The plans of all cells that have one, each once, with their model and board.

        A solver with arguments of the user's may be there beside the board's own.
        """
        named: dict[str, tuple[str, Plan]] = {}
        for cell in self.cells:
            if cell.plan is not None:
                name = f"{cell.model} on {cell.board.name}"
                named.setdefault(cell.plan.spec.id, (name, cell.plan))
        return list(named.values())

    @property
    def plans(self) -> list[Plan]:
        """The plans of all cells that have one, each once."""
        return [plan for _, plan in self.named]

    def announce(self, *, measure: bool = False) -> list[str]:
        """Print what runs on each board, what can't and why, and the cost of all.

        With `measure`, trainings whose steps are given are timed for a second each. Returns a line
        for each damaged record.
        """
        from ..display.dry_run import damaged, estimates, total, trains
        from ..display.terminal import print_hanging
        from ..runs.suites import budgets_of, in_words

        settings, tunes = self.prepare.settings, self.prepare.tunes
        to_train = []
        typer.echo(f"suite {self.suite.name} v{self.suite.version}: {self.suite.summary}")
        width = max(len(cell.board.name) for cell in self.cells)
        for cell in self.cells:
            text = f"  {cell.board.name:<{width}}  {cell.model}: {self._action(cell)}"
            print_hanging(text, width + 4)
            if cell.plan is not None and trains(cell.plan, settings, tunes=tunes):
                to_train.append(cell.plan)
        costs = [in_words(budget) for budget in budgets_of(to_train)]
        stepped = sum(plan.spec.budget is None for plan in to_train)
        costs += [f"{counted(stepped, 'training')} with fixed steps"] if stepped else []
        cost = f"{' and '.join(costs)}, not counting evaluation" if costs else "nothing to train"
        typer.echo(f"cost: {cost}")
        if tuning := self.prepare.tuning_cost(to_train):
            typer.echo(f"tuning: {tuning}")
        if measure and stepped:
            given = [plan for plan in to_train if plan.spec.budget is None]
            typer.echo(f"training time: {total(estimates(given, settings, tunes=tunes))}")
        return damaged(self.plans, settings, tunes=tunes)

    def _action(self, cell: SuiteCell) -> str:
        from ..display.dry_run import action
        from ..display.progress import action_of

        if cell.plan is None:
            return (
                f"unsupported: {cell.unsupported}" if cell.unsupported else f"error: {cell.error}"
            )
        fresh, tunes = action_of(cell.plan.spec), self.prepare.tunes
        does = action(cell.plan, self.prepare.settings, fresh, tunes=tunes)
        return f"{does}, tuned" if cell.plan.tuning else does

    def has_failures(self, errors: Mapping[str, BaseException]) -> bool:
        """Whether a cell failed, an extra one too; what a model can't do is no failure."""
        failed = [errors.get(cell.plan.spec.id) if cell.plan else cell.error for cell in self.cells]
        return any(e is not None and not isinstance(e, UnsupportedError) for e in failed)

    def require_columns(self, output: Output) -> None:
        """Refuse columns that the table of scores lacks before anything runs."""
        from ..display.suites import overall_table
        from ..leaderboards.suite_score import score_suite

        overall_table(score_suite(self.suite, {})).arranged(output)

    def print_scores(
        self, records: Iterable[Record], errors: Mapping[str, BaseException], output: Output
    ) -> list[str]:
        """Print the scores of the models that ran, and those that exist already.

        Returns a line for each damaged record, which is left out.
        """
        reasons = {}
        for cell in self.cells:
            error = errors.get(cell.plan.spec.id) if cell.plan else cell.error
            reason = f"unsupported: {cell.unsupported}" if cell.unsupported else None
            if error is not None:
                reason = f"failed: {reason_of(error)}"
            if reason is not None:
                reasons[cell.board.name, cell.model] = reason
        if output.style == "table":
            typer.echo()
        problems: list[str] = []
        scores = _scores(self.suite, [self.prepare.settings.out], records, problems)
        _print(scores, reasons, output)
        return problems


def _scores(
    suite: Suite, folders: Sequence[Path], ran: Iterable[Record], problems: list[str]
) -> SuiteTable:
    """The table of a suite, of records that `ran` and the others in folders.

    `problems` gets a line for each damaged record, which is left out.
    """
    from ..leaderboards.held_out import without_failing
    from ..leaderboards.reading import Together, sound_records_of
    from ..leaderboards.suite_score import score_suite
    from ..leaderboards.suite_support import with_support
    from ..runs.store import RecordStore
    from ..runs.suites import records_by_board

    known = {record.id: record for record in ran}
    store = Together(tuple(map(RecordStore, folders)))
    others = sound_records_of(store, problems.append)
    together = known | {record.id: record for record in others if record.id not in known}
    pairs = ((store.path_of(record), record) for record in together.values())
    records = list(without_failing(pairs, problems.append))
    return with_support(score_suite(suite, records_by_board(suite, records)))


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.toml", help="The suite.", autocompletion=complete_names("suite")
        ),
    ],
    folders: Folders = None,
    out: SameFolder = None,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
) -> None:
    """Print a suite's scores from the records in the given folders.

    To compare your records with the published ones: iclbench leaderboard suite core results
    leaderboards. Board names are columns too: --columns model,score,BOARD.
    """
    from ..runs.suites import boards_without_scores, find_suite

    suite, chosen = find_suite(name), records_folders(folders, out)
    problems = boards_without_scores(suite)
    scores = _scores(suite, chosen, [], problems)
    if not scores.entries and not problems:
        where = " or ".join(map(str, chosen))
        raise UsageError(f"there are no records of the suite {suite.name} in {where}")
    if scores.entries:
        _print(scores, {}, Output(style, columns, sort))
    end_with(problems)


def _print(scores: SuiteTable, reasons: Mapping[tuple[str, str], str], output: Output) -> None:
    """Print all tables, or the table of means as the options ask for."""
    from ..display.suites import overall_table, suite_parts
    from ..display.terminal import print_parts

    if output.is_default:
        print_parts(suite_parts(scores, reasons))
    else:
        show_table(overall_table(scores), output)
