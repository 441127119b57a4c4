"""`iclbench sweep --status` and `--dry-run`: what a sweep has done, and what it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..console import counted, one_line, report
from ..display.table import Output
from .common import show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..display.table import Table
    from ..sweeps.cells import Cells, Failure, SweepCell
    from ..sweeps.files import SweepFile
    from ..sweeps.status import CellStatus, SweepStatus

#: The most lines about cells in one state.
MOST_LINES = 20


def print_status(file: SweepFile, folder: Path, output: Output) -> list[Failure]:
    """Print how many cells are in each state, and a line for each that is not done.

    Returns the cells that can't be run.
    """
    from ..sweeps.cells import by_reason
    from ..sweeps.status import STATES, sweep_status

    status = sweep_status(file, out=folder)
    for line in (*status.unanswered, *status.unused):
        report(line)
    if not output.is_default:
        show_table(_status_table(status, folder), output)
        _report_later(status.later)
        return status.unusable
    counts = [
        f"{count} {state}{status.changed if state == 'done' else ''}"
        for state in STATES
        if (count := status.count(state))
    ]
    typer.echo(f"{counted(len(status.cells), 'run')}: {', '.join(counts) or 'none'}")
    for state in STATES[1:]:
        _print_some([_line(one, folder) for one in status.cells if one.state == state])
    _print_later(status.later)
    _print_some([f"can't be run: {line}" for line in by_reason(status.unusable)])
    return status.unusable


def _status_table(status: SweepStatus, folder: Path) -> Table:
    """Every cell with its state."""
    from ..display.table import Column, Table

    columns = (
        Column("state"),
        Column("model", fit="shorten"),
        Column("task", fit="shorten", importance=2),
        Column("reason", fit="wrap", importance=1),
        Column("log", extra=True),
        Column("command", fit="wrap", extra=True),
    )
    rows = [
        {
            "state": one.state,
            "model": one.cell.model,
            "task": one.cell.task,
            "reason": one_line(one.reason),
            "log": one.log,
            "command": one.cell.command(folder),
        }
        for one in status.cells
    ]
    rows += [
        {"state": "can't be run", "reason": one.reason, "command": one.command}
        for one in status.unusable
    ]
    return Table(columns, rows)


def _line(status: CellStatus, folder: Path) -> str:
    parts = [status.state, status.cell.command(folder)]
    parts += [one_line(status.reason)] if status.reason else []
    parts += [f"log: {status.log}"] if status.log else []
    return "\n  ".join([f"{parts[0]}: {parts[1]}", *parts[2:]])


def print_plan(file: SweepFile, folder: Path, output: Output) -> list[Failure]:
    """Print how many cells have records, and the programs of the others.

    Returns the cells that can't be run.
    """
    from ..sweeps.cells import by_reason
    from ..sweeps.grouped_cells import unused_checkpoints
    from ..sweeps.sweep import plan_sweep

    cells, programs = plan_sweep(file, out=folder)
    if unused := unused_checkpoints(cells.cells.values(), programs, cells.store):
        report(unused)
    if not output.is_default:
        show_table(_programs_table(programs, folder), output)
        _report_later(len(cells.waiting))
        for line in by_reason(cells.failures):
            report(f"can't be run: {line}")
        return cells.failures
    unrun = [cells.missing(program, shifts=False)[0] for program in programs]
    missing = sum(map(len, unrun))
    models = sum(max(1, cell.seeds) for program in unrun for cell in program)
    lacking = sum(map(len, programs)) - missing
    lack = f" ({lacking} to be evaluated under further shifts)" if lacking else ""
    recorded = len(cells.cells) - missing - sum(failure.damaged for failure in cells.failures)
    typer.echo(
        f"{counted(len(cells.cells), 'run')}: {recorded} have a record{lack}"
        f"{cells.of_other_code(cells.cells.values())}, {missing} to run as "
        f"{counted(sum(map(bool, unrun)), 'program')} of {counted(models, 'model')}"
    )
    _print_begun(programs, cells)
    _print_some([_program_line(program, folder) for program in programs])
    _print_later(len(cells.waiting))
    _print_some([f"can't be run: {line}" for line in by_reason(cells.failures)])
    return cells.failures


def _print_begun(programs: Sequence[Sequence[SweepCell]], cells: Cells) -> None:
    """Print how many programs resume, and why the checkpoints of others are refused."""
    from ..sweeps.grouped_cells import checkpoint_of_group, refused_checkpoint

    begun = [program for program in programs if checkpoint_of_group(program, cells.store).exists()]
    refused = [reason for program in begun if (reason := refused_checkpoint(program, cells))]
    if resumed := len(begun) - len(refused):
        goes = "resumes from its checkpoint" if resumed == 1 else "resume from their checkpoints"
        typer.echo(f"{counted(resumed, 'program')} {goes}")
    _print_some([f"can't be continued: {reason}" for reason in refused])


def _program_line(program: Sequence[SweepCell], folder: Path) -> str:
    """The command of a program's run, or of the first of several."""
    command = program[0].command(folder)
    return command if len(program) == 1 else f"{len(program)} runs together, such as: {command}"


def _programs_table(programs: Sequence[Sequence[SweepCell]], folder: Path) -> Table:
    """Every run that has no record, with the number of the program that runs it."""
    from ..display.table import Column, Table

    columns = (
        Column("program", right=True),
        Column("model", fit="shorten"),
        Column("task", fit="shorten"),
        Column("models", right=True, importance=1),
        Column("command", fit="wrap", extra=True),
    )
    rows = [
        {
            "program": number,
            "model": cell.model,
            "task": cell.task,
            "models": max(1, cell.seeds),
            "command": cell.command(folder),
        }
        for number, program in enumerate(programs, start=1)
        for cell in program
    ]
    return Table(columns, rows)


def _print_later(grids: int) -> None:
    """Print how many grids wait for the weights of other runs."""
    if grids:
        typer.echo(_waiting(grids))


def _report_later(grids: int) -> None:
    """As `_print_later`, on standard error."""
    if grids:
        report(_waiting(grids))


def _waiting(grids: int) -> str:
    needs = "needs" if grids == 1 else "need"
    return f"{counted(grids, 'grid')} {needs} weights of unfinished runs"


def _print_some(lines: list[str]) -> None:
    for line in lines[:MOST_LINES]:
        typer.echo(line)
    if len(lines) > MOST_LINES:
        typer.echo(f"… and {len(lines) - MOST_LINES} more")
