"""Tables and paragraphs as a terminal shows them.

On a terminal a table is as wide as the terminal: the least important columns are left out, and a
line names them. Where the rest, or the columns that were asked for, don't fit, rows are stacked:
no number is ever cut. Elsewhere a table has every column.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..console import is_terminal
from .fitting import (
    GAP,
    SHORTEST,
    UNLIMITED,
    cell_len,
    fitting,
    heads_column,
    least_width,
    longest_word,
    name_widths,
    natural_width,
    shortened_names,
    without,
)
from .stacked import stacked_lines
from .table import Column, Format, Table, cell_of

#: Begins the first line of each row where its texts may take several lines; it has no width.
FIRST_LINE = "\u2060"

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text


def write_table(table: Table, style: Format = "table") -> None:
    """Print a table on standard output."""
    if style == "table":
        print_table(table)
    else:
        from .formats import WRITERS

        print(WRITERS[style](table).rstrip("\n"))


def terminal_width() -> int | None:
    """The width that lines should fit into: COLUMNS, or the terminal's; None if there is none."""
    if is_terminal(sys.stdout) or (sys.stdout is not None and os.environ.get("COLUMNS")):
        return shutil.get_terminal_size().columns
    return None


def is_plain() -> bool:
    """Whether output has neither a width nor colours, and so needs no rich, which loads slowly."""
    return terminal_width() is None and not os.environ.get("FORCE_COLOR")


def console() -> Console:
    """Standard output; colours are those that the terminal and NO_COLOR allow."""
    from rich.console import Console

    width = terminal_width() or UNLIMITED
    # Without a height, rich takes a dumb terminal to have 80 columns.
    return Console(width=width, height=25, highlight=False, markup=False, emoji=False)


def print_hanging(text: str, indent: int) -> None:
    """Print a line of a list; what does not fit into the terminal's width follows, indented."""
    width = terminal_width()
    if width is None or len(text) <= width:
        print(text)
        return
    lines = textwrap.wrap(
        text,
        max(width, 2 * indent),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    print("\n".join(lines))


def print_text(text: str, style: str = "") -> None:
    """Print paragraphs, wrapped between words at the terminal's width."""
    if is_plain():
        print(text)
        return
    from rich.text import Text

    print_lines([Text(text, style=style)])


def print_parts(parts: Sequence[str | Table]) -> None:
    """Print paragraphs and tables with an empty line between; the first is the title."""
    for number, part in enumerate(parts):
        if number:
            print()
        if isinstance(part, Table):
            print_table(part, "a wider terminal shows them")
        elif part.startswith("$ "):
            print_line(part, "green")
        else:
            print_text(part, "bold" if number == 0 else "")


def print_line(text: str, style: str = "") -> None:
    """Print a command or a path: it is not broken, so that it can be copied."""
    if is_plain():
        print(text)
        return
    from rich.text import Text

    console().print(Text(text, style=style), soft_wrap=True)


def print_table(table: Table, remedy: str = "--columns all") -> None:
    """Print a table on the terminal, with the columns that fit and the names of the others."""
    width = terminal_width() or UNLIMITED
    above = heads_column(table, width)
    columns, left_out = fitting(without(table, above), width)
    notes = list(table.notes)
    if left_out:
        notes.append(f"not shown: {', '.join(left_out)} ({remedy})")
    if is_plain():
        title = [table.title, ""] if table.title else []
        print("\n".join([*title, *plain_lines(table, columns), *notes]))
        return
    from rich.text import Text

    lines: list[RichTable | Text] = []
    if table.title:
        lines += [Text(table.title, style="bold"), Text()]
    below = [Text(note, style="dim") for note in notes]
    if least_width(table, columns, SHORTEST) <= width:
        print_lines(lines)
        mark = FIRST_LINE if above is not None else ""
        for line in _with_heads(table, above, rendered([_rich(table, columns, width, mark)])):
            print(line)
        print_lines(below)
        return
    print_lines(lines)
    stacked = columns if above is None else [above, *columns]
    for line in stacked_lines(table, stacked, width):
        print_line(line)
    print_lines([Text(), *below] if below else [])


def plain_lines(table: Table, columns: Sequence[Column]) -> Iterator[str]:
    """The lines of a table without limit of width, as `_rich` would have them."""
    widths = [natural_width(table, column) for column in columns]
    rows = [[cell_of(row.get(column.name)).text for column in columns] for row in table.rows]
    if table.head:
        yield _plain_line([column.heading for column in columns], columns, widths)
        yield "-" * (sum(widths) + GAP * (len(widths) - 1))
    for row in rows:
        yield _plain_line(row, columns, widths)


def _plain_line(texts: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = [
        " " * (width - cell_len(text)) + text
        if column.right
        else text + " " * (width - cell_len(text))
        for text, column, width in zip(texts, columns, widths, strict=True)
    ]
    return (" " * GAP).join(padded).rstrip()


def print_lines(parts: Sequence[RichTable | Text]) -> None:
    """Print parts one below the other."""
    for line in rendered(parts):
        print(line)


def rendered(parts: Sequence[RichTable | Text]) -> list[str]:
    """The lines of parts one below the other, without spaces at their ends."""
    output = console()
    with output.capture() as captured:
        for part in parts:
            output.print(part)
    return [line.rstrip() for line in captured.get().split("\n")[:-1]]


def _with_heads(table: Table, column: Column | None, lines: list[str]) -> Iterator[str]:
    """A table's lines, where rows that share a column's text have it above them."""
    if column is None:
        yield from lines
        return
    from rich.text import Text

    texts = (cell_of(row.get(column.name)).text for row in table.rows)
    before = None
    for line in lines:
        if FIRST_LINE in line:
            text = next(texts)
            if text != before:
                yield from [""] if before is not None else []
                yield from (
                    rendered([Text(f"{column.heading} {text}", style="bold")]) if text else []
                )
            before = text
        yield line.replace(FIRST_LINE, "")


def _rich(table: Table, columns: Sequence[Column], width: int, mark: str = "") -> RichTable:
    """The table; every row begins with the mark."""
    import rich.box
    from rich.table import Table as RichTable
    from rich.text import Text

    # A rule below the headings alone; without headings, nothing.
    rule = "    \n    \n -- \n    \n    \n    \n    \n    \n" if table.head else "    \n" * 8
    most = name_widths(table, columns, width)
    rich_table = RichTable(
        box=rich.box.Box(rule, ascii=True),
        show_header=table.head,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in columns:
        rich_table.add_column(
            Text(column.heading),
            justify="right" if column.right else "left",
            no_wrap=column.fit != "wrap",
            min_width=longest_word(table, column) if column.fit == "wrap" else None,
            overflow="fold",
        )
    names = {
        column.name: shortened_names(
            (cell_of(row.get(column.name)).text for row in table.rows), most[column.name]
        )
        for column in columns
        if column.name in most
    }
    for row in table.rows:
        cells = [(column, cell_of(row.get(column.name))) for column in columns]
        texts = [
            Text(names.get(column.name, {}).get(cell.text, cell.text), style=cell.style)
            for column, cell in cells
        ]
        texts[0] = Text(mark) + texts[0]
        rich_table.add_row(*texts)
    return rich_table
