"""Tables as CSV, JSON, Markdown and LaTeX: these have every column, whatever the terminal."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

from ..api.names import without_nonfinite
from ..leaderboards.escaping import csv_cell, markdown, markdown_table
from .latex import as_latex
from .table import Table, cell_of, shown_columns, value_of


def as_json(table: Table) -> str:
    """A list of objects with the values of every column."""
    rows = [{c.name: value_of(row.get(c.name)) for c in table.columns} for row in table.rows]
    return json.dumps(without_nonfinite(rows), indent=2, ensure_ascii=False)


def as_csv(table: Table) -> str:
    """CSV with a header line; numbers have full precision, and what has parts is JSON."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        values = [value_of(row.get(column.name)) for column in table.columns]
        writer.writerow(map(csv_cell, map(_flat, values)))
    return file.getvalue()


def _flat(value: object) -> object:
    is_nested = isinstance(value, dict | list | tuple)
    return json.dumps(without_nonfinite(value), ensure_ascii=False) if is_nested else value


def as_markdown(table: Table) -> str:
    """A table in GitHub's Markdown, below its title."""
    columns = shown_columns(table)
    rows = [[cell_of(row.get(column.name)).text for column in columns] for row in table.rows]
    right = {index for index, column in enumerate(columns) if column.right}
    body = markdown_table([column.heading for column in columns], rows, right)
    notes = [markdown(note) for note in table.notes]
    return "\n\n".join(filter(None, [markdown(table.title), body, *notes])) + "\n"


WRITERS: dict[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "json": as_json,
    "markdown": as_markdown,
    "latex": as_latex,
}
