"""Tables and paragraphs as a terminal shows them.

On a terminal a table is as wide as the terminal: the least important columns are left out, and a
line names them. Where the rest, or the columns that were asked for, don't fit, rows are stacked:
no number is ever cut. Elsewhere a table has every column.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .stacked import stacked_lines
from .table import Column, Format, Table, cell_of, shown_columns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

#: The fewest characters of a name, those that it keeps as long as columns can be left out instead,
#: and the fewest of a text that is wrapped.
SHORTEST, SHORT, NARROWEST = 8, 26, 24
#: Characters between two columns: the padding and the divider.
GAP = 2
#: The width where there is no terminal: more than any line has.
UNLIMITED = 100_000


def write_table(table: Table, style: Format = "table") -> None:
    """Print a table on standard output."""
    if style == "table":
        print_table(table)
    else:
        from .formats import WRITERS

        print(WRITERS[style](table).rstrip("\n"))


def cell_len(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as width_of

    return width_of(text)


def terminal_width() -> int | None:
    """The width that lines should fit into: COLUMNS, or the terminal's; None if there is none."""
    # Without a standard output, as under some services, `sys.stdout` is None.
    if sys.stdout is not None and (sys.stdout.isatty() or os.environ.get("COLUMNS")):
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
    columns, left_out = fitting(table, width)
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
    if _least_width(table, columns, SHORTEST) <= width:
        print_lines([*lines, _rich(table, columns, width), *below])
        return
    print_lines(lines)
    for line in stacked_lines(table, columns, width):
        print_line(line)
    print_lines([Text(), *below] if below else [])


def plain_lines(table: Table, columns: Sequence[Column]) -> Iterator[str]:
    """The lines of a table without limit of width, as `_rich` would have them."""
    widths = [_natural(table, column) for column in columns]
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
    """Print parts one below the other, without spaces at the ends of lines."""
    output = console()
    with output.capture() as captured:
        for part in parts:
            output.print(part)
    print("\n".join(line.rstrip() for line in captured.get().split("\n")), end="")


def fitting(table: Table, width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit into a width, and the names of those that are left out."""
    columns = shown_columns(table)
    left_out: list[Column] = []
    while _least_width(table, columns) > width:
        droppable = [column for column in columns if column.importance and not table.selected]
        if not droppable:
            break
        last = max(droppable, key=lambda column: column.importance)
        columns.remove(last)
        left_out.append(last)
    return columns, [column.name for column in table.columns if column in left_out]


def _natural(table: Table, column: Column) -> int:
    texts = [column.heading, *(cell_of(row.get(column.name)).text for row in table.rows)]
    return max(cell_len(text) for text in texts)


def _longest_word(table: Table, column: Column) -> int:
    """The longest word of a column, as far as it is not broken in any case."""
    texts = [column.heading, *(cell_of(row.get(column.name)).text for row in table.rows)]
    longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
    return min(longest, NARROWEST)


def _least_width(table: Table, columns: Sequence[Column], name: int = SHORT) -> int:
    """The width with texts as narrow as is pleasant, and names of at most `name` characters."""
    most = {"wrap": NARROWEST, "shorten": name, "whole": UNLIMITED}
    widths = [min(_natural(table, column), most[column.fit]) for column in columns]
    return sum(widths) + GAP * (len(columns) - 1)


def _name_widths(table: Table, columns: Sequence[Column], width: int) -> dict[str, int]:
    """The width of each column of names: the widest gives way first."""
    widths = {c.name: _natural(table, c) for c in columns if c.fit == "shorten"}
    others = [column for column in columns if column.fit != "shorten"]
    room = width - _least_width(table, others) - GAP * len(widths)
    while widths and sum(widths.values()) > room and max(widths.values()) > SHORTEST:
        widths[max(widths, key=lambda name: widths[name])] -= 1
    return widths


def _rich(table: Table, columns: Sequence[Column], width: int) -> RichTable:
    import rich.box
    from rich.table import Table as RichTable
    from rich.text import Text

    # A rule below the headings alone; without headings, nothing.
    rule = "    \n    \n -- \n    \n    \n    \n    \n    \n" if table.head else "    \n" * 8
    most = _name_widths(table, columns, width)
    made = RichTable(
        box=rich.box.Box(rule, ascii=True),
        show_header=table.head,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in columns:
        made.add_column(
            Text(column.heading),
            justify="right" if column.right else "left",
            no_wrap=column.fit != "wrap",
            min_width=_longest_word(table, column) if column.fit == "wrap" else None,
            overflow="fold",
        )
    for row in table.rows:
        cells = [(column, cell_of(row.get(column.name))) for column in columns]
        made.add_row(
            *(
                Text(shortened(cell.text, most.get(column.name, UNLIMITED)), style=cell.style)
                for column, cell in cells
            )
        )
    return made


def shortened(text: str, most: int) -> str:
    """At most so many characters; the end, which tells rows apart, keeps more than the start."""
    if len(text) <= most:
        return text
    start = (most - 1) // 3
    return f"{text[:start]}…{text[start + 1 - most :]}"
