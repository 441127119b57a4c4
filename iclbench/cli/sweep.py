"""`iclbench sweep`: the grids of a TOML file, only what is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .common import Device, Engine, Strict, engine_name, sound_host


def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep file, TOML.")],
    out: Annotated[str | None, typer.Option(metavar="DIR", help="Overrides the file's.")] = None,
    device: Device = "auto",
    executor: Annotated[str, typer.Option(help="What runs the programs.")] = "local",
    workers: Annotated[
        int, typer.Option(min=1, help="Programs at once; more than 1: a process each, one thread.")
    ] = 1,
    recipe: Annotated[
        str, typer.Option(help="The size: quick is the file as it stands; it may name others.")
    ] = "quick",
    engine: Engine = "auto",
    strict: Strict = False,
) -> None:
    """Run every cell of a grid that has no record yet; a cell that fails stops nothing."""
    sound_host(strict)
    from ..leaderboards.figures import save
    from ..leaderboards.study import render_study
    from ..leaderboards.tables import boards, render
    from ..runs.store import RecordStore
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
    for board in boards(result.records, RecordStore(folder)):
        typer.echo("\n" + render(board))
    if sized.table is not None and result.records:
        typer.echo("\n" + render_study(sized.table, result.records, RecordStore(folder)))
    if sized.figure is not None and result.records:
        page = folder / f"{file.stem}.html"
        save(sized.figure, result.records, page)
        typer.echo(f"\nfigure: {page}")
    for failure in result.failures:
        print(f"iclbench: failed: {failure.command}\n  {failure.reason}", file=sys.stderr)
    if result.failures:
        raise typer.Exit(1)
