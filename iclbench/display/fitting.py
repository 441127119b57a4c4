"""Which columns of a table fit into a width, and how much of a name does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from .table import Column, Table, cell_of, shown_columns

#: The fewest characters of a name, and those that it keeps as long as columns can be left out.
SHORTEST, SHORT = 8, 26
#: The fewest characters of a name's end.
LEAST_END = 4
#: Characters between two columns: the padding and the divider.
GAP = 2
#: The width where there is no terminal: more than any line has.
UNLIMITED = 100_000


def cell_len(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as width_of

    return width_of(text)


def heads_column(table: Table, width: int) -> Column | None:
    """The column that stands above its rows: where all columns can't be shown whole.

    It can where equal texts follow each other.
    """
    columns = shown_columns(table)
    least = sum(natural_width(table, column) for column in columns) + GAP * (len(columns) - 1)
    if least <= width:
        return None
    return next((c for c in columns if c.heads and _is_grouped(table, c)), None)


def _is_grouped(table: Table, column: Column) -> bool:
    texts = [text for text, _ in groupby(cell_of(row.get(column.name)).text for row in table.rows)]
    # Rows without a text may come first and last.
    inner = texts[texts[:1] == [""] : len(texts) - (texts[-1:] == [""])]
    return len({*inner}) == len(inner)


def without(table: Table, column: Column | None) -> Table:
    """The table without a column."""
    return replace(table, columns=[c for c in table.columns if column is None or c != column])


def fitting(table: Table, width: int) -> tuple[list[Column], list[str]]:
    """The columns that fit into a width, and the headings of those that are left out."""
    columns = shown_columns(table)
    left_out: list[Column] = []
    while least_width(table, columns) > width or _cut_alike(table, columns, width):
        droppable = [column for column in columns if column.importance and not table.selected]
        if not droppable:
            break
        last = max(droppable, key=lambda column: column.importance)
        columns.remove(last)
        left_out.append(last)
    return columns, [column.heading for column in table.columns if column in left_out]


def natural_width(table: Table, column: Column) -> int:
    """The width at which a column's heading and texts are whole."""
    texts = [column.heading, *(cell_of(row.get(column.name)).text for row in table.rows)]
    return max(cell_len(text) for text in texts)


def longest_word(table: Table, column: Column) -> int:
    """The longest word of a column, as far as it is not broken in any case."""
    texts = [column.heading, *(cell_of(row.get(column.name)).text for row in table.rows)]
    longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
    return min(longest, column.narrowest)


def least_width(table: Table, columns: Sequence[Column], name: int = SHORT) -> int:
    """The width with texts as narrow as is pleasant, and names of at most `name` characters."""
    most = {"shorten": name, "whole": UNLIMITED}
    widths = [
        min(natural_width(table, column), most.get(column.fit, column.narrowest))
        for column in columns
    ]
    return sum(widths) + GAP * (len(columns) - 1)


def name_widths(table: Table, columns: Sequence[Column], width: int) -> dict[str, int]:
    """The width of each column of names: the widest gives way first."""
    widths = {c.name: natural_width(table, c) for c in columns if c.fit == "shorten"}
    others = [column for column in columns if column.fit != "shorten"]
    room = width - least_width(table, others) - GAP * len(widths)
    while widths and sum(widths.values()) > room and max(widths.values()) > SHORTEST:
        widths[max(widths, key=lambda name: widths[name])] -= 1
    return widths


def _cut_alike(table: Table, columns: Sequence[Column], width: int) -> bool:
    """Whether two names could not be told apart once they have lost their middle."""
    for name, most in name_widths(table, columns, width).items():
        texts = {cell_of(row.get(name)).text for row in table.rows}
        if len(set(shortened_names(texts, most).values())) < len(texts):
            return True
    return False


def shortened_names(texts: Iterable[str], most: int) -> dict[str, str]:
    """Each text in at most so many columns.

    What follows the first word, such as a model's arguments, is cut before it, unless two texts
    could not be told apart then.
    """
    texts = set(texts)
    cut = {text: _cut_after_name(text, most) for text in texts}
    count = Counter(cut.values())
    return {text: cut[text] if count[cut[text]] == 1 else shortened(text, most) for text in texts}


def shortened(text: str, most: int) -> str:
    """A text of at most so many columns; its end, which tells rows apart, keeps more of them."""
    if cell_len(text) <= most:
        return text
    return _without_middle(text, most, _first(text, (most - 1) // 3))


def _cut_after_name(text: str, most: int) -> str:
    """The first word and as much of the end as has room, if that is LEAST_END or more."""
    name, _, rest = text.partition(" ")
    if cell_len(text) <= most or not rest or cell_len(name) + 1 + LEAST_END > most:
        return shortened(text, most)
    return _without_middle(text, most, name)


def _without_middle(text: str, most: int, start: str) -> str:
    end = _first(text[::-1], most - 1 - cell_len(start))[::-1]
    return f"{start}…{end}"


def _first(text: str, most: int) -> str:
    """As much of a text as takes at most so many columns."""
    while cell_len(text) > most:
        text = text[: most if len(text) > most else -1]
    return text
