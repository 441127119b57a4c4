"""`iclbench sweep --status` and `--dry-run`: what a sweep has done, and what it would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..console import one_line

if TYPE_CHECKING:
    from ..sweeps.files import SweepFile
    from ..sweeps.status import CellStatus

#: The most lines about cells in one state.
MOST_LINES = 20


def print_status(file: SweepFile, folder: Path) -> None:
    """Print how many cells are in each state, and a line for each that is not done."""
    from ..sweeps.status import STATES, sweep_status

    status = sweep_status(file, out=folder)
    counts = [f"{status.count(state)} {state}" for state in STATES if status.count(state)]
    typer.echo(f"{len(status.cells)} runs: {', '.join(counts) or 'none'}")
    for state in STATES[1:]:
        _print_some([_line(one) for one in status.cells if one.state == state])
    if status.later:
        typer.echo(f"{status.later} grids take weights of runs that are not done")
    _print_some([f"can't be run: {one.command}: {one.reason}" for one in status.unusable])


def _line(status: CellStatus) -> str:
    parts = [status.state, f"{status.cell.command()}"]
    parts += [one_line(status.reason)] if status.reason else []
    parts += [f"log: {status.log}"] if status.log else []
    return "\n  ".join([f"{parts[0]}: {parts[1]}", *parts[2:]])


def print_plan(file: SweepFile, folder: Path) -> None:
    """Print how many cells have records, and the programs of the others."""
    from ..sweeps.sweep import plan_sweep

    cells, programs = plan_sweep(file, out=folder)
    missing = sum(len(program) for program in programs)
    models = sum(max(1, cell.seeds) for program in programs for cell in program)
    typer.echo(
        f"{len(cells.cells)} runs: {len(cells.cells) - missing} have a record, {missing} to run "
        f"as {len(programs)} programs of {models} models"
    )
    _print_some([f"{len(program)} × {program[0].command()}" for program in programs])
    _print_some([f"can't be run: {one.command}: {one.reason}" for one in cells.failures])


def _print_some(lines: list[str]) -> None:
    for line in lines[:MOST_LINES]:
        typer.echo(line)
    if len(lines) > MOST_LINES:
        typer.echo(f"… and {len(lines) - MOST_LINES} more")
