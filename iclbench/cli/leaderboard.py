"""`iclbench leaderboard`: tables from records alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UsageError
from .common import Out, record_paths

if TYPE_CHECKING:
    from ..api.record import Record
    from ..leaderboards.figures import Figure

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

    from ..api.errors import unknown
    from ..leaderboards.tables import boards, render
    from ..runs.store import RecordStore, read_per_prompt, read_record

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
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="The name of a study that a plugin ships, or a sweep file; with --x records, or "
            "folders of them. Without it the names are listed.",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="html|svg|pdf|png", help="Default: the file's.")
    ] = "",
    file: Annotated[
        Path | None, typer.Option(help="The file to write.  [default: NAME.FORMAT]")
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where a study's records are.  [default: its own, or published]"
        ),
    ] = None,
    size: Annotated[str, typer.Option("--recipe", help="The study's size.")] = "quick",
    x: Annotated[
        str | None,
        typer.Option(help="A field of the spec (model_args.layers), curve, or training."),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Metrics, a panel each; default: the task's.")
    ] = None,
    lines: Annotated[str, typer.Option(help="Fields that set lines apart.")] = "model",
    panels: Annotated[str, typer.Option(help="Fields that set panels apart.")] = "",
    maps: Annotated[
        str | None, typer.Option(help="A metric whose maps are drawn instead, a row a record.")
    ] = None,
    title: Annotated[str, typer.Option(help="Above the figure.")] = "",
) -> None:
    """Draw a study's figure from its records, or with --x one of any records."""
    from ..leaderboards.studies import caption, find_study, records_of, studies
    from ..plugins import host

    if not what:
        for study in studies(host()):
            typer.echo(f"{study.name}: {study.caption}")
        return
    if x is not None or maps is not None:
        asked = {"x": x, "y": None if y is None else _names(y), "lines": _names(lines),
                 "panels": _names(panels), "maps": maps, "title": title}  # fmt: skip
        _figure_of_records(what, asked, file, kind)
        return
    if len(what) > 1:
        raise UsageError("one name, or records with --x")
    study = find_study(what[0], host())
    sized, found, missing = records_of(study, size, records)
    if sized.figure is None:
        raise UsageError(f"{study.path} has no figure")
    drawn = sized.figure.model_copy(update={"title": title}) if title else sized.figure
    about = caption(study.caption or drawn.title, found, missing)
    _export(drawn, found, file, kind, study.name.replace("/", "-"), about)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _figure_of_records(
    paths: list[str], asked: dict[str, Any], file: Path | None, kind: str
) -> None:
    from ..api.config import parse_config
    from ..leaderboards.figures import Figure
    from ..leaderboards.studies import caption
    from ..runs.store import read_record

    found = [read_record(path) for path in record_paths([Path(p) for p in paths])]
    drawn = parse_config(Figure, asked, "figure")
    _export(drawn, found, file, kind, "figure", caption(drawn.title, found))


def _export(
    drawn: Figure, found: list[Record], file: Path | None, kind: str, name: str, about: str
) -> None:
    from ..api.errors import unknown
    from ..leaderboards.export import FORMATS, export

    kind = kind or (file.suffix.removeprefix(".") if file else "html")
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    path = file or Path(f"{name}.{kind}")
    export(drawn, found, path, kind, about)
    typer.echo(f"figure: {path}\n{about}")


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
