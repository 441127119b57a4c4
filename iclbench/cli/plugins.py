"""`iclbench plugins`: every plugin, what it provides, how long it took to import, what is wrong."""

from __future__ import annotations

import json

import typer

from .common import AsJson, Strict


def plugins(as_json: AsJson = False, strict: Strict = False) -> None:
    """List all plugins, the broken ones too, with their import times."""
    from ..plugins import host

    found = host()
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
        for p in found.plugins
    ]
    if as_json:
        typer.echo(json.dumps({"plugins": rows, "problems": found.problems}, indent=2))
    else:
        for plugin in found.plugins:
            state = "broken" if plugin.problem else "ok"
            milliseconds = f"{1000 * plugin.import_seconds:.1f} ms"
            typer.echo(f"{plugin.label}: {state}, {milliseconds}")
            for kind, entries in plugin.entries.items():
                if entries:
                    typer.echo(f"  {kind}: {', '.join(e.name for e in entries)}")
        for problem in found.problems:
            typer.echo(f"! {problem}")
    if strict:
        found.require_sound()
