"""`iclbench describe NAME`: an entry as its documentation says what it is."""

from __future__ import annotations

from typing import Annotated

import typer

from ..api.errors import UsageError, unknown
from ..discovery import CATALOG_HOOKS
from ..display.table import Output
from ..plugins import host
from .common import Columns, Sort, Strict, Style, show_tables, sound_host

KINDS = (*CATALOG_HOOKS, "plugin")


def _complete(incomplete: str) -> list[str]:
    """The names of all entries, and the kinds."""
    names = {entry.name for kind in CATALOG_HOOKS for _, entry in host().entries(kind)}
    return sorted({*names, *KINDS})


def describe(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] NAME",
            help=f"Name of an entry; put its kind first if it is ambiguous: {', '.join(KINDS)}.",
            autocompletion=_complete,
        ),
    ],
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    strict: Strict = False,
) -> None:
    """Explain an entry: what it is, its arguments with their defaults, and how to use it.

    Recipes of single tasks, such as `paper`, work too. With another --format, --columns or --sort,
    print only the tables.
    """
    from ..display import entries, lookup
    from ..display.table import Table
    from ..display.terminal import print_parts

    *before, name = words
    if len(before) > 1:
        raise UsageError("give one name, with its kind before it if needed")
    plugins = sound_host(strict)
    if before and before[0] not in KINDS:
        if lookup.kinds_of(plugins, f"{before[0]}-{name}"):
            raise UsageError(f"give one name: did you mean '{before[0]}-{name}'?")
        raise unknown("kind", before[0], KINDS)
    if before:
        (kind,) = kinds = before
        if name not in lookup.known_names(plugins, kind):
            raise unknown(kind, name, lookup.known_names(plugins, kind))
    else:
        kinds = lookup.kinds_of(plugins, name)
    if not kinds and name in KINDS:
        raise UsageError(f"{name} is a kind: give a name after it; `iclbench ls` lists them")
    if not kinds:
        raise unknown("name", name, lookup.known_names(plugins, None))
    pages = [list(entries.describe(plugins, kind, name)) for kind in kinds]
    output = Output(style, columns, sort)
    if not output.is_default:
        tables = [part for page in pages for part in page if isinstance(part, Table)]
        if not tables:
            raise UsageError(f"the page of {name!r} has no table")
        show_tables(tables, output)
        return
    for number, page in enumerate(pages):
        if number:
            typer.echo()
        print_parts(page)
