"""Rows one below the other, a line for each of their columns: for tables that no width holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .table import Column, Row, Table, cell_of

#: The fewest characters that a value is wrapped to, however narrow the terminal is.
NARROWEST = 16


def stacked_lines(table: Table, columns: Sequence[Column], width: int) -> Iterator[str]:
    """The lines of a table's rows, empty cells left out, with an empty line between two rows.

    What all rows share stands once above them. Texts of columns that may be wrapped are, between
    words; others stay whole, as commands have to.
    """
    label = max(len(column.heading) for column in columns)
    shared = _shared(table, columns) if len(table.rows) > 1 else []
    parts = [(table.rows[0], shared)] if shared else []
    own = [column for column in columns if column not in shared]
    for number, (row, shown) in enumerate([*parts, *((row, own) for row in table.rows)]):
        if number:
            yield ""
        for column in shown:
            yield from _cell_lines(row, column, label, width)


def _shared(table: Table, columns: Sequence[Column]) -> list[Column]:
    """The columns in which all rows have the same text."""
    texts = {c: {cell_of(row.get(c.name)).text for row in table.rows} for c in columns}
    return [column for column in columns if len(texts[column]) == 1 and "" not in texts[column]]


def _cell_lines(row: Row, column: Column, label: int, width: int) -> Iterator[str]:
    text, head = cell_of(row.get(column.name)).text, f"{column.heading:<{label}}  "
    if text and column.fit != "wrap":
        yield head + text
    elif text:
        yield from textwrap.wrap(
            text,
            max(width, len(head) + NARROWEST),
            initial_indent=head,
            subsequent_indent=" " * len(head),
            break_long_words=False,
            break_on_hyphens=False,
        )
