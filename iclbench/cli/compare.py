"""`iclbench compare`: two records on the prompts that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..display.table import Output
from .common import Columns, Sort, Style, show_table
from .paths import usable_path

First = Annotated[
    Path, typer.Argument(metavar="A", help="A record's JSON file.", parser=usable_path)
]
Second = Annotated[
    Path, typer.Argument(metavar="B", help="Another record's JSON file.", parser=usable_path)
]


def compare(
    first: First,
    second: Second,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
) -> None:
    """Show the paired differences a − b of every metric that two records share.

    Both must have been evaluated on the same prompts. The intervals are over seeds and prompts; a
    or b is better where the difference is significant.
    """
    from ..display.comparison import compared, comparison_table
    from ..display.terminal import print_parts
    from ..runs.store import read_record

    a, b = read_record(first), read_record(second)
    table = comparison_table(a, b).arranged(Output(style, columns, sort))
    if style == "table":
        print_parts(compared(a, b))
        typer.echo()
    show_table(table, Output(style))
