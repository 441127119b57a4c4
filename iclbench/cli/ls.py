"""`iclbench ls`: what there is to run, without importing any of it."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from .common import AsJson, Strict, sound_host

Kind = Literal["models", "tasks", "recipes", "metrics", "graders", "executors", "plugins"]


def ls(
    kind: Annotated[Kind | None, typer.Argument(help="What to list; all by default.")] = None,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """List models, tasks, recipes, metrics, graders, executors or plugins."""
    found = sound_host(strict)
    rows = []
    if kind == "plugins":
        rows = [
            {"kind": "plugin", "name": p.name, "summary": p.problem or p.module, "plugin": p.label}
            for p in found.plugins
        ]
    else:
        every = ["models", "tasks", "recipes", "metrics", "graders", "executors"]
        kinds = [kind] if kind else every
        for one in kinds:
            word = one.removesuffix("s")
            rows += [
                {"kind": word, "name": e.name, "summary": e.summary, "plugin": p.label}
                for p, e in found.entries(word)
            ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    wide = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        prefix = "" if kind else f"{row['kind']:<9}"
        typer.echo(f"{prefix}{row['name']:<{wide}}  {row['summary']}")
