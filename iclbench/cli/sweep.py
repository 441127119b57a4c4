"""`iclbench sweep`: run the grids of a TOML file; existing records are skipped."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.options import parse_arguments
from .common import (
    CheckpointSeconds,
    Device,
    DryRun,
    Engine,
    ExecutorArgs,
    ExecutorName,
    Strict,
    Workers,
    engine_name,
    sound_host,
)
from .interruption import stops_on_signals

if TYPE_CHECKING:
    from ..sweeps.files import SweepFile
    from ..sweeps.sweep import SweepResult


def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep file, TOML.")],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Overrides the file's.")] = None,
    device: Device = "auto",
    executor: ExecutorName = "local",
    executor_args: ExecutorArgs = None,
    workers: Workers = None,
    recipe: Annotated[
        str, typer.Option(help="The size: quick, or one that the file describes.")
    ] = "quick",
    engine: Engine = "auto",
    checkpoint_seconds: CheckpointSeconds = 30.0,
    detach: Annotated[
        bool, typer.Option("--detach", help="Submit the programs to a queue, and don't wait.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Say what is done, running, waiting or failed.")
    ] = False,
    dry_run: DryRun = False,
    strict: Strict = False,
) -> None:
    """Run every cell of a sweep file; existing records are skipped, failures stop nothing."""
    sound_host(strict)
    with stops_on_signals(f"to continue: {shlex.join(['iclbench', *sys.argv[1:]])}"):
        from ..sweeps.files import read_sweep_file
        from ..sweeps.programs import make_executor
        from ..sweeps.sweep import submit_sweep
        from ..sweeps.sweep import sweep as run_sweep
        from .sweep_status import print_plan, print_status

        sized = read_sweep_file(file).sized(recipe)
        folder = Path(out or sized.out)
        if status or dry_run:
            print_status(sized, folder) if status else print_plan(sized, folder)
            return
        result = (submit_sweep if detach else run_sweep)(
            sized,
            out=folder,
            device=device,
            executor=make_executor(
                executor, parse_arguments(executor_args or [], "--executor-args"), folder
            ),
            workers=workers,
            engine=engine_name(engine),
            checkpoint_seconds=checkpoint_seconds,
            report=typer.echo,
        )
    if result.records and not detach:
        _show(sized, result, folder, folder / f"{file.stem}.html")
    for failure in result.failures:
        log = f"\n  log: {failure.log}" if failure.log else ""
        print(f"iclbench: failed: {failure.command}\n  {failure.reason}{log}", file=sys.stderr)
    if result.failures:
        raise typer.Exit(1)


def _show(file: SweepFile, result: SweepResult, folder: Path, page: Path) -> None:
    """Print the boards and the sweep's own table, and write its figure to `page`."""
    from ..display.boards import print_boards
    from ..leaderboards.board import boards
    from ..leaderboards.figures.draw import draw
    from ..leaderboards.figures.export import write_page
    from ..leaderboards.tables import render_study
    from ..runs.store import RecordStore

    store = RecordStore(folder)
    print_boards(boards(result.records, store))
    if file.table is not None:
        typer.echo("\n" + render_study(file.table, result.records, store))
    if file.figure is not None:
        write_page(draw(file.figure, result.records), page)
        typer.echo(f"\nfigure: {page}")
