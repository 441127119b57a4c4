"""`iclbench leaderboard`: tables, figures and the site, from records alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UsageError, unknown
from . import site_of, suites
from .common import (
    PUBLISHED,
    Columns,
    Folders,
    SameFolder,
    Sort,
    Style,
    complete_names,
    end_with,
    record_paths,
    records_folders,
    show_table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..api.record import Record
    from ..sweeps.figure import Figure

app = typer.Typer(
    help="Make ranked tables and figures from records.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("suite")(suites.show)


@app.callback()
def group() -> None:
    """Make ranked tables and figures from records."""


#: More boards than this are shown a line each.
MOST_BOARDS = 8


@app.command()
def show(
    folders: Folders = None,
    out: SameFolder = None,
    task: Annotated[
        str | None,
        typer.Option(help="Show only this task.", autocompletion=complete_names("task")),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help=f"Show all boards in full, even more than {MOST_BOARDS}.")
    ] = False,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print the command that reproduces each row.")
    ] = False,
) -> None:
    """Print ranked tables of all records in the given folders.

    To compare your records with the published ones: iclbench leaderboard show results leaderboards.
    In a terminal, tables show the columns that fit. CSV and JSON are one table of all rows, with
    full precision.
    """
    from ..display.boards import overview_table, print_boards
    from ..leaderboards.board import comparable
    from ..leaderboards.reading import Together, boards_of, records_of
    from ..runs.store import RecordStore

    store = Together(tuple(map(RecordStore, records_folders(folders, out))))
    problems: list[str] = []
    records = records_of(store, problems.append, task=task)
    if not records and not problems:
        where = f"there are no records in {store}"
        raise UsageError(where + (f" of {task}" if task else ""))
    plain = style == "table" and columns is None and sort is None and not commands
    groups = comparable(records) if plain and task is None and not every else []
    if len(groups) > MOST_BOARDS:
        show_table(overview_table(groups), "table", None, None)
        typer.echo("\nUse --task NAME for the boards of one task, or --all for all boards.")
    else:
        boards = boards_of(records, store, problems.append)
        print_boards(boards, style, columns=columns, sort=sort, commands=commands)
    end_with(problems)


@app.command()
def costs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of records.  [default: leaderboards/records]"),
    ] = None,
    digits: Annotated[
        str, typer.Option(metavar="K,…", help="Mean validation digits to reach, such as 1,2,3.")
    ] = "",
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
) -> None:
    """Print the cost of training and tuning each record, in hours and operations, with totals.

    With --digits, print the cost of training one seed until it reached that many digits.
    """
    from ..display.costs import costs_table, digits_table
    from ..leaderboards.costs import costs_of, digits_of
    from ..leaderboards.reading import Together, records_of
    from ..runs.store import RecordStore

    store = Together(tuple(map(RecordStore, records_folders(folders or [PUBLISHED], None))))
    problems: list[str] = []
    records = records_of(store, problems.append)
    cells = costs_of(records)
    if not cells and not problems:
        raise UsageError("there are no records of trained models in these folders")
    reached = digits_of(records, _numbers(digits)) if digits else []
    if digits and not reached and not problems:
        raise UsageError("--digits: no record in these folders was validated in digits")
    show_table(digits_table(reached) if digits else costs_table(cells), style, columns, sort)
    end_with(problems)


@app.command()
def figure(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="A study's name or a sweep file; with --x, records or folders of records. "
            "Default: list the studies.",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="html|svg|pdf|png", help="Default: from --file.")
    ] = "",
    file: Annotated[
        Path | None, typer.Option(help="The file to write.  [default: NAME.FORMAT]")
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The study's records.  [default: its own folder, or the published one]",
        ),
    ] = None,
    size: Annotated[str, typer.Option("--recipe", help="The study's size.")] = "quick",
    x: Annotated[
        str | None,
        typer.Option(
            help="A field of the spec (model_args.layers), state_bytes (the size of a layer's "
            "state), curve, training (the loss), or operations, seconds or steps (the validation)."
        ),
    ] = None,
    y: Annotated[
        str | None, typer.Option(help="Metrics, one panel each; default: the task's.")
    ] = None,
    lines: Annotated[str, typer.Option(help="Fields; each value gets its own line.")] = "model",
    panels: Annotated[str, typer.Option(help="Fields; each value gets its own panel.")] = "",
    maps: Annotated[
        str | None, typer.Option(help="Draw this metric's maps instead, one row per record.")
    ] = None,
    title: Annotated[str, typer.Option(help="The figure's title.")] = "",
) -> None:
    """Draw a study's figure from its records, or with --x a figure of any records."""
    from ..leaderboards.studies import caption, find_study, records_of
    from ..plugins import host

    if not what:
        _list_studies()
        return
    if x is not None or maps is not None:
        options = {"x": x, "y": y and _names(y), "lines": _names(lines),
                   "panels": _names(panels), "maps": maps, "title": title}  # fmt: skip
        _figure_of_records(what, options, file, kind)
        return
    if len(what) > 1 or Path(what[0]).is_dir():
        raise UsageError("give the name of one study, or --x with records or their folders")
    study = find_study(what[0], host())
    sweep, members, missing = records_of(study, size, records)
    if sweep.figure is None:
        raise UsageError(f"{study.path} has no figure")
    described = sweep.figure.model_copy(update={"title": title} if title else {})
    about = caption(study.caption or described.title, members, missing)
    _write(described, members, about, _path(file, kind, study.name.replace("/", "-")))


def _list_studies() -> None:
    from ..display.table import Column, Table
    from ..leaderboards.studies import studies
    from ..plugins import host

    rows = [{"study": study.name, "shows": study.caption} for study in studies(host())]
    show_table(Table((Column("study"), Column("shows", fit="wrap")), rows), "table", None, None)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"--digits takes numbers such as 1,2,3, not {text!r}") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _figure_of_records(
    paths: list[str], options: dict[str, Any], file: Path | None, kind: str
) -> None:
    from ..api.config import parse_config
    from ..leaderboards.reading import sound_records
    from ..leaderboards.studies import caption
    from ..sweeps.figure import Figure

    problems: list[str] = []
    sound = sound_records(record_paths([Path(p) for p in paths]), problems.append)
    records = [record for _, record in sound]
    if problems and not records:
        end_with(problems)
    described = parse_config(Figure, options, "figure")
    about = caption(described.title, records)
    _write(described, records, about, _path(file, kind, "figure"))
    end_with(problems)


def _path(file: Path | None, kind: str, name: str) -> tuple[Path, str]:
    """The file to write and its format; raises UsageError for an unknown format."""
    from ..leaderboards.figures.export import FORMATS

    ending = file.suffix.removeprefix(".") if file else "html"
    kind = kind or ending
    if kind not in FORMATS:
        raise unknown("format", kind, FORMATS)
    if file and ending in FORMATS and ending != kind:
        raise UsageError(f"{file} would hold {kind}, not {ending}: change --file or --format")
    return file or Path(f"{name}.{kind}"), kind


def _write(figure: Figure, records: Sequence[Record], about: str, target: tuple[Path, str]) -> None:
    from ..leaderboards.figures.draw import draw
    from ..leaderboards.figures.export import write_figure

    path, kind = target
    write_figure(draw(figure, records), path, kind, about)
    typer.echo(f"figure: {path}\n{about}")


@app.command()
def build(
    folder: Annotated[
        Path, typer.Argument(help="Leaderboards folder; the records are in FOLDER/records.")
    ] = Path("leaderboards"),
    parquet: Annotated[bool, typer.Option(help="Write rows.parquet, which needs pyarrow.")] = True,
) -> None:
    """Write Markdown pages, CSV and Parquet of all records in a folder."""
    from ..leaderboards.build import build as build_tables

    problems: list[str] = []
    for path in build_tables(folder, parquet, problems.append):
        typer.echo(path)
    end_with(problems)


app.command("site")(site_of.site)
