"""`iclbench ls`: list all entries without importing their code."""

from __future__ import annotations

import json
from typing import Annotated, Literal, get_args

import typer

from .common import AsJson, Strict, sound_host

Kind = Literal[
    "models",
    "tasks",
    "recipes",
    "suites",
    "metrics",
    "graders",
    "executors",
    "trackers",
    "plugins",
]


def ls(
    kind: Annotated[
        Kind | None, typer.Argument(help="What to list; default: all but plugins.")
    ] = None,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """List models, tasks, recipes, suites, metrics, graders, executors, trackers or plugins."""
    plugins = sound_host(strict)
    rows = []
    if kind == "plugins":
        rows = [
            {"kind": "plugin", "name": p.name, "summary": p.problem or p.module, "plugin": p.label}
            for p in plugins.plugins
        ]
    else:
        kinds = [kind] if kind else [k for k in get_args(Kind) if k != "plugins"]
        for singular in (k.removesuffix("s") for k in kinds):
            rows += [
                {"kind": singular, "name": e.name, "summary": e.summary, "plugin": p.label}
                for p, e in plugins.entries(singular)
            ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        prefix = "" if kind else f"{row['kind']:<9}"
        typer.echo(f"{prefix}{row['name']:<{width}}  {row['summary']}")
