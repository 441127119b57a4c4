"""`iclbench leaderboard`: tables, figures and the site, from records alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..api.errors import UsageError
from ..display.table import Output
from ..files import LEADERBOARDS, RECORDS
from . import figures, site_of, suites
from .common import (
    PUBLISHED,
    Columns,
    Sort,
    Style,
    complete_names,
    end_with,
    records_folders,
    show_table,
)
from .paths import Folders, SameFolder, usable_path

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
        typer.Option(
            metavar="NAME", help="Show only this task.", autocompletion=complete_names("task")
        ),
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show every board in full; by default, more than "
            f"{MOST_BOARDS} boards are summarized.",
        ),
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
    from ..display.boards import print_boards
    from ..display.overview import overview_table
    from ..leaderboards.board import comparable
    from ..leaderboards.held_out import without_failing
    from ..leaderboards.reading import Together, boards_of, require_task, sound_records_of
    from ..runs.store import RecordStore

    store = Together(tuple(map(RecordStore, records_folders(folders, out))))
    require_task(store, task)
    problems: list[str] = []
    records = sound_records_of(store, problems.append, task=task)
    if not records and not problems:
        raise UsageError(f"there are no records in {store}")
    output = Output(style, columns, sort)
    is_plain = output.is_default and not (commands or every or task)
    groups = comparable(records) if is_plain else []
    if len(groups) > MOST_BOARDS:
        paths_and_records = ((store.path_of(record), record) for record in records)
        credible = {record.id for record in without_failing(paths_and_records, problems.append)}
        show_table(overview_table(groups, credible))
        typer.echo("\nUse --task NAME for the boards of one task, or --all for all boards.")
    else:
        boards = boards_of(records, store, problems.append)
        print_boards(boards, output, commands=commands)
        if style == "table":
            _print_cited([store.folder for store in store.stores], {board.task for board in boards})
    end_with(problems)


def _print_cited(folders: Sequence[Path], tasks: set[str]) -> None:
    """Print the results that the file beside published records cites for these tasks."""
    from ..display.terminal import print_text
    from ..leaderboards.cited import read_cited

    for folder in folders:
        whole = Path(os.path.normpath(folder.absolute()))  # with the name of a link
        cited = read_cited(whole.parent, tasks) if whole.name == RECORDS else {}
        for task in sorted(tasks & set(cited)):
            typer.echo(f"\ncited for {task}, not verified here and not ranked:")
            for entry in cited[task]:
                print_text(entry.sentence)


@app.command()
def costs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folders of records.  [default: leaderboards/records]",
            parser=usable_path,
        ),
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
    from ..leaderboards.reading import Together, sound_records_of
    from ..runs.store import RecordStore

    store = Together(tuple(map(RecordStore, records_folders(folders or [PUBLISHED], None))))
    problems: list[str] = []
    records = sound_records_of(store, problems.append)
    cells = costs_of(records)
    if not cells and not problems:
        raise UsageError("there are no records of trained models in these folders")
    reached = digits_of(records, _numbers(digits)) if digits else []
    if digits and not reached and not problems:
        raise UsageError("--digits: no record in these folders was validated in digits")
    table = digits_table(reached) if digits else costs_table(cells)
    show_table(table, Output(style, columns, sort))
    end_with(problems)


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        raise UsageError(f"--digits takes numbers such as 1,2,3, not {text!r}")
    return numbers


app.command("figure")(figures.figure)


@app.command()
def build(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Leaderboards folder; the records are in FOLDER/records.",
            parser=usable_path,
        ),
    ] = Path(LEADERBOARDS),
    parquet: Annotated[
        bool, typer.Option(help="Write rows.parquet and curves.parquet, else delete them.")
    ] = True,
) -> None:
    """Write Markdown pages, CSV and Parquet of all records in a folder."""
    from ..leaderboards.build import build as build_tables

    problems: list[str] = []
    for path in build_tables(folder, parquet, problems.append):
        typer.echo(path)
    end_with(problems)


app.command("site")(site_of.site)
