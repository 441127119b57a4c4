"""Table: rows with a text and a value for each cell, printed in any format.

On a terminal a table is as wide as the terminal: the least important columns are left out, and a
line names them. Elsewhere, and in the other formats, it has every column.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import rich.box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ..api.errors import unknown

Format = Literal["table", "csv", "json", "markdown", "latex"]

#: The fewest characters of a shortened name, and of a text that is wrapped.
SHORTEST, NARROWEST = 8, 24
#: Characters between two columns: the padding and the divider.
GAP = 2
#: The width where there is no terminal: more than any line has.
UNLIMITED = 100_000

_RULE = rich.box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "−": "$-$", "±": r"$\pm$", "…": r"\dots{}", "–": "--", "●": r"$\bullet$", "○": r"$\circ$",
    "▲": r"$\blacktriangle$", "◆": r"$\blacklozenge$", "■": r"$\blacksquare$", "†": r"\dag{}",
    "‡": r"\ddag{}", "₁": "$_1$", "₀": "$_0$",
}  # fmt: skip


class Cell(NamedTuple):
    """What a table shows in one place, and the value behind it: CSV, JSON and sorting use that."""

    text: str
    value: Any
    style: str = ""


#: A row may also hold plain texts and numbers, which are their own values.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column. Of the columns with an `importance`, the largest number is left out first.

    `fit` says what happens to long texts on a narrow terminal: they stay whole, are wrapped, or
    lose their middle. An `extra` column is shown where it is asked for, and in CSV and JSON.
    """

    name: str
    right: bool = False
    importance: int = 0
    fit: Literal["whole", "wrap", "shorten"] = "whole"
    extra: bool = False


@dataclass(frozen=True)
class Table:
    """Columns and rows, with a line above and in `notes` what stands below."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = field(default=())

    def select(self, names: str | None) -> Table:
        """The columns of `names`, such as `a,b` or `all`; raises UsageError for an unknown one."""
        if names is None:
            return self
        known = {column.name: replace(column, extra=False) for column in self.columns}
        asked = [name.strip() for name in names.split(",") if name.strip()]
        if asked == ["all"]:
            return replace(self, columns=tuple(known.values()))
        for name in asked:
            if name not in known:
                raise unknown("column", name, known)
        # Columns that were asked for are never left out.
        return replace(self, columns=tuple(replace(known[n], importance=0) for n in asked))

    def sort(self, name: str | None) -> Table:
        """The rows sorted by a column, `-name` for the largest first; empty cells come last.

        Raises UsageError for an unknown column.
        """
        if name is None:
            return self
        columns = {column.name for column in self.columns}
        downward = name not in columns and name.startswith("-")
        key = name.removeprefix("-") if downward else name
        if key not in columns:
            raise unknown("column", key, columns)
        values = [(_value(row.get(key)), index) for index, row in enumerate(self.rows)]
        filled = [pair for pair in values if not _is_empty(pair[0])]
        numeric = all(isinstance(value, int | float) for value, _ in filled)
        order = sorted(
            filled, key=lambda pair: pair[0] if numeric else str(pair[0]), reverse=downward
        )
        order += [pair for pair in values if _is_empty(pair[0])]
        return replace(self, rows=[self.rows[index] for _, index in order])


def _cell(content: Any) -> Cell:
    if isinstance(content, Cell):
        return content
    return Cell("" if content is None else str(content), content)


def _value(content: Any) -> Any:
    return _cell(content).value


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


# Formats


def write_table(table: Table, style: Format = "table") -> None:
    """Print a table on standard output."""
    if style == "table":
        print_table(table)
    else:
        print(WRITERS[style](table).rstrip("\n"))


def as_json(table: Table) -> str:
    """A list of objects with the values of every column."""
    rows = [{c.name: _value(row.get(c.name)) for c in table.columns} for row in table.rows]
    return json.dumps(_finite(rows), indent=2, ensure_ascii=False)


def _finite(value: Any) -> Any:
    """The value with null for numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(table: Table) -> str:
    """CSV with a header line; numbers have full precision."""
    from ..leaderboards.escaping import csv_cell

    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([csv_cell(_value(row.get(column.name))) for column in table.columns])
    return file.getvalue()


def as_markdown(table: Table) -> str:
    """A table in GitHub's Markdown, below its title."""
    from ..leaderboards.escaping import markdown

    columns = _shown(table)
    lines = [[markdown(_cell(row.get(c.name)).text) for c in columns] for row in table.rows]
    head = [markdown(column.name) for column in columns]
    rule = ["---:" if column.right else "---" for column in columns]
    body = "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))
    notes = [markdown(note) for note in table.notes]
    return "\n\n".join(filter(None, [markdown(table.title), body, *notes])) + "\n"


def as_latex(table: Table) -> str:
    """A `tabular` for the package booktabs, below its title as a comment."""
    columns = _shown(table)
    lines = [" & ".join(_latex(_cell(row.get(c.name)).text) for c in columns) for row in table.rows]
    title = f"% {table.title}\n" if table.title else ""
    form = "".join("r" if column.right else "l" for column in columns)
    head = " & ".join(_latex(column.name) for column in columns)
    body = "".join(f"{line} \\\\\n" for line in lines)
    return (
        f"{title}\\begin{{tabular}}{{{form}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}"
        "\\bottomrule\n\\end{tabular}\n"
    )


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


WRITERS: dict[str, Callable[[Table], str]] = {
    "csv": as_csv,
    "json": as_json,
    "markdown": as_markdown,
    "latex": as_latex,
}


# The terminal


def terminal_width() -> int | None:
    """The width that lines should fit into: COLUMNS, or the terminal's; None if there is none."""
    # Without a standard output, as under some services, `sys.stdout` is None.
    if sys.stdout is not None and (sys.stdout.isatty() or os.environ.get("COLUMNS")):
        return shutil.get_terminal_size().columns
    return None


def console() -> Console:
    """Standard output; colours are those that the terminal and NO_COLOR allow."""
    width = terminal_width() or UNLIMITED
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_text(text: str, style: str = "") -> None:
    """Print paragraphs, wrapped between words at the terminal's width."""
    print_lines([Text(text, style=style)])


def print_table(table: Table) -> None:
    """Print a table on the terminal, with the columns that fit and the names of the others."""
    width = terminal_width() or UNLIMITED
    columns, left_out = fitting(table, width)
    lines: list[RichTable | Text] = []
    if table.title:
        lines += [Text(table.title, style="bold"), Text()]
    lines.append(_rich(table, columns, width))
    notes = list(table.notes)
    if left_out:
        notes.append(f"not shown: {', '.join(left_out)} (--columns all)")
    print_lines([*lines, *(Text(note, style="dim") for note in notes)])


def print_lines(parts: Sequence[RichTable | Text]) -> None:
    """Print parts one below the other, without spaces at the ends of lines."""
    output = console()
    with output.capture() as captured:
        for part in parts:
            output.print(part)
    print("\n".join(line.rstrip() for line in captured.get().split("\n")), end="")


def _shown(table: Table) -> list[Column]:
    """The columns that are not extra and hold anything."""
    return [
        column
        for column in table.columns
        if not column.extra
        and (not column.importance or any(_cell(row.get(column.name)).text for row in table.rows))
    ]


def fitting(table: Table, width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit into a width, and the names of those that are left out."""
    columns = _shown(table)
    left_out: list[Column] = []
    while _least_width(table, columns) > width:
        droppable = [column for column in columns if column.importance]
        if not droppable:
            break
        last = max(droppable, key=lambda column: column.importance)
        columns.remove(last)
        left_out.append(last)
    return columns, [column.name for column in table.columns if column in left_out]


def _natural(table: Table, column: Column) -> int:
    texts = [column.name, *(_cell(row.get(column.name)).text for row in table.rows)]
    return max(cell_len(text) for text in texts)


def _least_width(table: Table, columns: Sequence[Column]) -> int:
    """The width with texts that may be wrapped as narrow as is pleasant."""
    widths = [
        min(_natural(table, column), NARROWEST) if column.fit == "wrap" else _natural(table, column)
        for column in columns
    ]
    return sum(widths) + GAP * (len(columns) - 1)


def _rich(table: Table, columns: Sequence[Column], width: int) -> RichTable:
    too_wide = _least_width(table, columns) - width
    names = [column for column in columns if column.fit == "shorten"]
    most: dict[str, int] = {}
    for column in names if too_wide > 0 else []:
        natural = _natural(table, column)
        most[column.name] = max(SHORTEST, natural - too_wide)
        too_wide -= natural - most[column.name]
    made = RichTable(
        box=_RULE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold"
    )
    for column in columns:
        made.add_column(
            Text(column.name),
            justify="right" if column.right else "left",
            no_wrap=column.fit != "wrap",
            overflow="fold",
        )
    for row in table.rows:
        cells = [(column, _cell(row.get(column.name))) for column in columns]
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
