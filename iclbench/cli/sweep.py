"""`iclbench sweep`: run the grids of a TOML file; existing records are skipped."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Device, Engine, Strict, engine_name, sound_host
from .interruption import stops_on_signals

if TYPE_CHECKING:
    from ..sweeps.files import SweepFile
    from ..sweeps.sweep import SweepResult


def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep file, TOML.")],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Overrides the file's.")] = None,
    device: Device = "auto",
    executor: Annotated[str, typer.Option(help="The executor that runs the programs.")] = "local",
    workers: Annotated[
        int, typer.Option(min=1, help="Programs to run at once; above 1, one process each.")
    ] = 1,
    recipe: Annotated[
        str, typer.Option(help="The size: quick, or one that the file describes.")
    ] = "quick",
    engine: Engine = "auto",
    strict: Strict = False,
) -> None:
    """Run every cell of a sweep file; existing records are skipped, failures stop nothing."""
    sound_host(strict)
    with stops_on_signals(f"to continue: {shlex.join(['iclbench', *sys.argv[1:]])}"):
        from ..sweeps.files import read_sweep_file
        from ..sweeps.sweep import sweep as run_sweep

        sized = read_sweep_file(file).sized(recipe)
        folder = Path(out or sized.out)
        result = run_sweep(
            file,
            out=folder,
            device=device,
            executor=executor,
            workers=workers,
            recipe=recipe,
            engine=engine_name(engine),
            report=typer.echo,
        )
    if result.records:
        _show(sized, result, folder, folder / f"{file.stem}.html")
    for failure in result.failures:
        print(f"iclbench: failed: {failure.command}\n  {failure.reason}", file=sys.stderr)
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
