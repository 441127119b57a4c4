"""`iclbench plugins`: every plugin with its entries, import time and problems."""

from __future__ import annotations

import json

import typer

from .common import AsJson, Strict


def plugins(as_json: AsJson = False, strict: Strict = False) -> None:
    """List all plugins, including broken ones, with their import times."""
    from ..plugins import host

    loaded = host()
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
    if as_json:
        typer.echo(json.dumps({"plugins": rows, "problems": loaded.problems}, indent=2))
    else:
        for plugin in loaded.plugins:
            state = "broken" if plugin.problem else "ok"
            milliseconds = f"{1000 * plugin.import_seconds:.1f} ms"
            typer.echo(f"{plugin.label}: {state}, {milliseconds}")
            for kind, entries in plugin.entries.items():
                if entries:
                    typer.echo(f"  {kind}: {', '.join(e.name for e in entries)}")
        for problem in loaded.problems:
            typer.echo(f"! {problem}")
    if strict:
        loaded.require_sound()
