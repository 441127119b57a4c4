"""Rows one below the other, a line for each of their columns: for tables that no width holds."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from .table import Column, Table, cell_of

#: The fewest characters that a value is wrapped to, however narrow the terminal is.
NARROWEST = 16


def stacked_lines(table: Table, columns: Sequence[Column], width: int) -> Iterator[str]:
    """The lines of a table's rows, empty cells left out, with an empty line between two rows.

    Texts of columns that may be wrapped are, between words; others stay whole, as commands have to.
    """
    label = max(len(column.heading) for column in columns)
    for number, row in enumerate(table.rows):
        if number:
            yield ""
        for column in columns:
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
