"""`iclbench plugins`: every plugin with its entries, import time and problems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UsageError
from ..display.table import Output
from .common import Columns, Sort, Strict, Style, show_table

if TYPE_CHECKING:
    from ..plugins import PluginHost


def plugins(
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with each entry and all problems.")
    ] = False,
    strict: Strict = False,
) -> None:
    """List all plugins, including broken ones, with their import times."""
    from ..display.table import Cell, Column, Table
    from ..plugins import host

    loaded = host()
    output = Output(style, columns, sort)
    if as_json and not output.is_default:
        raise UsageError("--json prints everything: leave out --format, --columns and --sort")
    if as_json:
        typer.echo(json.dumps(_document(loaded), indent=2))
    else:
        rows = [
            {
                "plugin": p.name,
                "state": Cell("broken", "broken", "red") if p.problem else "ok",
                "distribution": f"{p.distribution} {p.version}",
                "import": Cell(f"{1000 * p.import_seconds:.1f} ms", p.import_seconds),
                "module": p.module,
                "provides": "; ".join(
                    f"{kind} {', '.join(e.name for e in entries)}"
                    for kind, entries in p.entries.items()
                    if entries
                ),
            }
            for p in loaded.plugins
        ]
        columns_ = (
            Column("plugin"),
            Column("state"),
            Column("distribution", importance=1),
            Column("import", right=True, importance=2),
            Column("module", extra=True),
            # The last one, so that a long list widens no other line.
            Column("provides", fit="wrap"),
        )
        show_table(Table(columns_, rows), output)
        for problem in loaded.problems if style == "table" else ():
            typer.echo(f"! {problem}")
    if strict:
        loaded.require_sound()


def _document(loaded: PluginHost) -> dict[str, Any]:
    rows = [
        {
            "name": p.name,
            "distribution": p.distribution,
            "version": p.version,
            "module": p.module,
            "import_seconds": round(p.import_seconds, 4),
            "provides": {kind: [e.name for e in es] for kind, es in p.entries.items() if es},
            "problem": p.problem,
        }
        for p in loaded.plugins
    ]
    return {"plugins": rows, "problems": loaded.problems}
