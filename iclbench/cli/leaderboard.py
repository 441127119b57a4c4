"""`iclbench leaderboard`: tables from records alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UsageError
from .common import Out, record_paths

app = typer.Typer(
    help="Ranked tables and figures from records.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Ranked tables and figures from records."""


@app.command()
def show(
    out: Out = "results",
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    style: Annotated[str, typer.Option("--format", help="One of tabulate's formats.")] = "github",
    commands: Annotated[
        bool, typer.Option("--commands", help="Print what reproduces each row.")
    ] = False,
) -> None:
    """Print the ranked tables of all records in a folder."""
    from tabulate import tabulate_formats

    from ..errors import unknown
    from ..leaderboards import boards, render
    from ..records import RecordStore, read_per_prompt, read_record

    if style not in tabulate_formats:
        raise unknown("format", style, tabulate_formats)
    store = RecordStore(Path(out))
    if not store.folder.is_dir():
        raise UsageError(f"there is no folder {out}")
    records, problems = [], []
    for path in store.paths():
        try:
            record = read_record(path)
            read_per_prompt(path, record)
        except UsageError as error:
            problems.append(str(error))
        else:
            if task in {None, record.spec.task}:
                records.append(record)
    if not records and not problems:
        raise UsageError(f"there are no records in {out}" + (f" of {task}" if task else ""))
    for board in boards(records, store):
        typer.echo(render(board, style) + "\n")
        if commands:
            typer.echo("".join(f"    {record.command}\n" for record in board.records))
    for problem in problems:
        print(f"iclbench: error: {problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(2)


@app.command()
def figure(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of them.")],
    x: Annotated[
        str, typer.Option(help="A field of the spec (model_args.layers), curve, or training.")
    ],
    file: Annotated[Path, typer.Option(help="The page to write.")] = Path("figure.html"),
    y: Annotated[str | None, typer.Option(help="A metric; default: the task's.")] = None,
    lines: Annotated[str, typer.Option(help="Fields that set lines apart.")] = "model",
    title: Annotated[str, typer.Option(help="Above the figure.")] = "",
) -> None:
    """Draw an error against a field of the spec, or along a curve, as a page."""
    from ..config import parse_config
    from ..leaderboards.figures import Figure, save
    from ..records import read_record

    found = [read_record(path) for path in record_paths(records)]
    names = tuple(name.strip() for name in lines.split(",") if name.strip())
    asked = {"x": x, "y": y, "lines": names, "title": title}
    save(parse_config(Figure, asked, "figure"), found, file)
    typer.echo(f"figure: {file}")


@app.command()
def build(
    folder: Annotated[
        Path, typer.Argument(help="The leaderboards; the records are in FOLDER/records.")
    ] = Path("leaderboards"),
    parquet: Annotated[bool, typer.Option(help="Write rows.parquet, which needs pyarrow.")] = True,
) -> None:
    """Write Markdown pages, CSV and Parquet of all records in a folder."""
    from ..leaderboards.build import build as build_tables

    for path in build_tables(folder, parquet):
        typer.echo(path)


@app.command()
def site(
    out: Annotated[Path, typer.Argument(help="Where the pages go: a folder, new or of a site.")],
    folder: Annotated[
        Path, typer.Option("--from", metavar="DIR", help="The records are in DIR/records.")
    ] = Path("leaderboards"),
) -> None:
    """Write a static site of all records in a folder; it needs no server and no network."""
    from ..leaderboards.site.build import make_site

    pages = make_site(out, folder)
    typer.echo(f"{pages} pages: {out / 'index.html'}")
