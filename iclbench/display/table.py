"""Table: rows with a text and a value for each cell, which can be selected and sorted."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ..api.errors import UsageError, unknown

Format = Literal["table", "csv", "json", "markdown", "latex"]


class Output(NamedTuple):
    """How tables are printed: the options `--format`, `--columns` and `--sort`."""

    style: Format = "table"
    columns: str | None = None
    sort: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing was asked for."""
        return self == AS_TABLE


#: Where nothing was asked for.
AS_TABLE = Output()


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
    lose their middle. An `extra` column is shown where it is asked for, and in CSV and JSON. Where
    names would lose their middle, a `heads` column stands above the rows that share its text.
    `narrowest` is the fewest characters of a text that is wrapped.
    """

    name: str
    right: bool = False
    importance: int = 0
    fit: Literal["whole", "wrap", "shorten"] = "whole"
    extra: bool = False
    heads: bool = False
    narrowest: int = 24
    #: What stands above the column, if not its name.
    label: str = ""

    @property
    def heading(self) -> str:
        """What stands above the column."""
        return self.label or self.name


@dataclass(frozen=True)
class Table:
    """Columns and rows, with a line above and in `notes` what stands below."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    notes: Sequence[str] = field(default=())
    #: Whether the columns' headings stand above them.
    head: bool = True
    #: Whether somebody asked for these columns, so that none is left out.
    selected: bool = False

    def select(self, names: str | None) -> Table:
        """The columns of `names`, such as `a,b` or `all`; raises UsageError for an unknown one."""
        if names is None:
            return self
        known = {column.name: replace(column, extra=False) for column in self.columns}
        asked = [name.strip() for name in names.split(",") if name.strip()]
        if asked == ["all"]:
            return replace(self, columns=tuple(known.values()), selected=True)
        if not asked:
            raise UsageError("--columns names no column; `all` shows every column")
        chosen = tuple(replace(known[self._name(name)], importance=0) for name in asked)
        return replace(self, columns=chosen, selected=True)

    def arranged(self, output: Output) -> Table:
        """The table as `--columns` and `--sort` ask for it; raises UsageError for unknown ones."""
        return self.sort(output.sort).select(output.columns)

    def sort(self, name: str | None) -> Table:
        """The rows sorted by a column, `-name` for the largest first; empty cells come last.

        Raises UsageError for an unknown column.
        """
        if name is None:
            return self
        names = {text for column in self.columns for text in (column.name, column.heading)}
        downward = name not in names and name.startswith("-")
        key = self._name(name.removeprefix("-") if downward else name)
        values = [(value_of(row.get(key)), index) for index, row in enumerate(self.rows)]
        filled = [pair for pair in values if not _is_empty(pair[0])]
        numeric = all(isinstance(value, int | float) for value, _ in filled)
        order = sorted(
            filled,
            key=lambda pair: pair[0] if numeric else _by_its_numbers(str(pair[0])),
            reverse=downward,
        )
        order += [pair for pair in values if _is_empty(pair[0])]
        return replace(self, rows=[self.rows[index] for _, index in order])

    def _name(self, text: str) -> str:
        """The name of the column with this name, or with this heading if only one has it."""
        headings = Counter(column.heading for column in self.columns)
        known = {c.heading: c.name for c in self.columns if headings[c.heading] == 1}
        known |= {column.name: column.name for column in self.columns}
        if text not in known:
            raise unknown("column", text, known)
        return known[text]


#: A number with its sign and exponent; in a name, such as that of a model, its digits alone.
_NUMBER = re.compile(r"((?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|[0-9]+)")


def _by_its_numbers(text: str) -> list[str | float]:
    """A key that sorts texts by the numbers in them: ranks 2–4 before 10–12, −0.2 before −0.1."""
    parts = _NUMBER.split(text)
    return [float(part) if index % 2 else part for index, part in enumerate(parts)]


def joined(tables: Sequence[Table]) -> Table:
    """The rows of all tables below one another, with the columns of any."""
    if len(tables) == 1:
        return tables[0]
    columns = {column.name: column for table in tables for column in table.columns}
    return Table(tuple(columns.values()), [row for table in tables for row in table.rows])


def cell_of(content: Any) -> Cell:
    """The content of a place in a row as a cell."""
    if isinstance(content, Cell):
        return content
    return Cell("" if content is None else str(content), content)


def value_of(content: Any) -> Any:
    """The value of a place in a row."""
    return cell_of(content).value


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def shown_columns(table: Table) -> list[Column]:
    """The columns that are not extra and hold anything."""
    return [
        column
        for column in table.columns
        if not column.extra
        and (not column.importance or any(cell_of(row.get(column.name)).text for row in table.rows))
    ]
