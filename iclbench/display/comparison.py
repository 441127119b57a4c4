"""Two records on the prompts that they share, as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..api.record import Record
from ..leaderboards.formats import digits, short
from ..leaderboards.paired import SIGNIFICANCE
from ..leaderboards.pairs import paired_lines
from .records import title_of
from .table import Cell, Column, Row, Table

#: Differences below this part of the means are rounding.
ROUNDING = 1e-9

_COLUMNS = (
    Column("metric", fit="wrap"),
    Column("statistic", extra=True),
    Column("a", right=True, importance=2),
    Column("b", right=True, importance=2),
    Column("a − b", right=True),
    Column("95% interval", right=True),
    Column("p", right=True, importance=3),
    Column("better"),
    Column("note", fit="wrap", narrowest=10, importance=1),
    Column("low", right=True, extra=True),
    Column("high", right=True, extra=True),
)


def compared(first: Record, second: Record) -> list[str]:
    """What a and b are, a paragraph each."""
    named = (("a", first), ("b", second))
    return [t for name, r in named for t in (f"{name}: {title_of(r)}", f"$ {r.command}")]


def comparison_table(first: Record, second: Record) -> Table:
    """A line for each metric that both records have; raises UsageError as `compare` does."""
    return Table(_COLUMNS, [_row(line) for line in paired_lines(first, second)])


def _row(line: Mapping[str, Any]) -> Row:
    """The texts of a line; numbers are followed by those that are not rounded."""
    in_digits = line["statistic"] == "mean digits"
    write = digits if in_digits else short
    numbers = {name: value for name, value in line.items() if isinstance(value, float)}
    cells = {
        name: Cell(write(value), value) if math.isfinite(value) else Cell("", None)
        for name, value in numbers.items()
    }
    rounding = ROUNDING * max(abs(line["a"]), abs(line["b"]))
    for name in ("difference", "low", "high"):
        if abs(line[name]) <= rounding:
            cells[name] = Cell(write(0.0), line[name])
    # An interval that excludes 0 must not seem to include it.
    low, high = (
        f"{line[name]:.1g}"
        if line["p"] < SIGNIFICANCE and cells[name].text == write(0.0)
        else cells[name].text
        for name in ("low", "high")
    )
    return {
        **line,
        **cells,
        "metric": Cell(f"{'digits of ' * in_digits}{line['metric']}", line["metric"]),
        "a − b": cells["difference"],
        "95% interval": f"{low} … {high}" if low else "",
        "p": Cell(_p(line["p"]) if low else "", cells["p"].value),
    }


def _p(value: float) -> str:
    if value < 0.001:
        return "<0.001"
    text = f"{value:.3f}"
    # A significant p must not seem to be at the level.
    return f"<{text}" if value < SIGNIFICANCE <= float(text) else text
