"""`iclbench show`: one record's numbers and curves as tables and plots."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import UsageError
from ..console import is_terminal
from ..display.table import Output
from ..sweeps.record_paths import record_paths
from .common import Columns, Sort, Style, end_with, show_table
from .paths import Records

if TYPE_CHECKING:
    from ..api.record import Record


def show(
    records: Records,
    plot: Annotated[
        bool | None,
        typer.Option("--plot/--no-plot", help="Draw the curves; default: only on a terminal."),
    ] = None,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
) -> None:
    """Show a record's metrics, floor, curves, analyses and weights file.

    CSV and JSON hold the metrics of all records as one table.
    """
    from dataclasses import replace

    from ..display.records import metrics_table
    from ..display.table import joined
    from ..leaderboards.reading import sound_records

    if plot and style != "table":
        raise UsageError(f"--plot draws nothing beside --format {style}")
    output = Output(style, columns, sort)
    problems: list[str] = []
    sound = (record for _, record in sound_records(record_paths(records), problems.append))
    if style in {"csv", "json"}:
        tables = [replace(metrics_table(record), notes=()) for record in sound]
        if tables:
            show_table(joined(tables), output)
    else:
        drawn = (is_terminal(sys.stdout) if plot is None else plot) and style == "table"
        for number, record in enumerate(sound):
            if number:
                typer.echo()
            _page(record, drawn, output)
    end_with(problems)


def _page(record: Record, plot: bool, output: Output) -> None:
    from ..display.latex import comment
    from ..display.plot import plots_of, print_plot
    from ..display.records import (
        analysis_table,
        curve_table,
        facts_of,
        metrics_table,
        title_of,
    )
    from ..display.terminal import print_line, print_parts
    from ..runs.objects import Objects

    style = output.style
    metrics = metrics_table(record).arranged(output)
    about = [title_of(record), *facts_of(record)]
    if style == "latex":
        typer.echo("\n".join(map(comment, about)))
    else:
        print_parts(about)
        typer.echo()
    show_table(metrics, Output(style))
    tables = [curve_table(record, name) for name in record.curves]
    tables += [analysis_table(record, name) for name in record.analyses]
    for table in tables:
        if table.rows:
            typer.echo()
            show_table(table, Output(style))
    for one in plots_of(record) if plot else ():
        typer.echo()
        print_plot(one)
    if record.weights_file is not None:
        path = Objects.beside(record.path).path(record.weights_file)
        typer.echo()
        line = f"weights: {path}"
        print_line(comment(line) if style == "latex" else line)
