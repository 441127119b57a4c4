"""`iclbench ls`: list all entries; only the recipes of tasks need the tasks' code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.errors import UsageError, unknown
from ..discovery import CATALOG_HOOKS
from ..display.table import Output
from .common import AsJson, Columns, Sort, Strict, Style, show_table, sound_host

if TYPE_CHECKING:
    from ..plugins import PluginHost

#: What can be listed: the entries of a kind, or the plugins.
KINDS = tuple(f"{kind}s" for kind in (*CATALOG_HOOKS, "plugin"))


def ls(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help=f"What to list: {', '.join(KINDS)}; default: all except plugins.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = None,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    as_json: AsJson = False,
    strict: Strict = False,
) -> None:
    """List the entries of one kind, of all kinds, or the plugins.

    `ls recipes` also lists the recipes of single tasks.
    """
    from ..display.table import Column, Table

    if as_json and style != "table":
        raise UsageError("give either --json or --format, not both")
    if kind is not None and kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    plugins = sound_host(strict)
    rows = list(_rows(plugins, kind))
    table = Table(
        (
            Column("kind", importance=2) if kind is None else Column("kind", extra=True),
            Column("name"),
            *([Column("task")] if kind == "recipes" else []),
            Column("summary", fit="wrap"),
            Column("plugin", importance=1, extra=True),
        ),
        rows,
    )
    show_table(table, Output("json" if as_json else style, columns, sort))
    if kind is None and style == "table" and not as_json:
        typer.echo("\n`iclbench ls recipes` also lists the recipes of single tasks.")
        typer.echo("`iclbench describe NAME` explains an entry.")


def _rows(plugins: PluginHost, kind: str | None) -> Iterator[dict[str, Any]]:
    if kind == "plugins":
        for p in plugins.plugins:
            yield {
                "kind": "plugin",
                "name": p.name,
                "summary": p.problem or p.module,
                "plugin": p.label,
            }
        return
    for singular in [kind.removesuffix("s")] if kind else CATALOG_HOOKS:
        for p, e in plugins.entries(singular):
            yield {"kind": singular, "name": e.name, "summary": e.summary, "plugin": p.label}
    if kind == "recipes":
        yield from _recipes_of_tasks(plugins)


def _recipes_of_tasks(plugins: PluginHost) -> Iterator[dict[str, Any]]:
    """The recipes that tasks have of their own, which needs the tasks to be imported."""
    from ..display.arguments import recipe_summary
    from ..display.lookup import tasks_of

    owners = {entry.name: plugin for plugin, entry in plugins.entries("task")}
    for task, kind in tasks_of(plugins):
        for name, recipe in kind.recipes.items():
            yield {
                "kind": "recipe",
                "name": name,
                "task": task,
                "summary": recipe_summary(recipe),
                "plugin": owners[task].label,
            }
