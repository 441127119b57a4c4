"""Verbs that plugins add; their code is imported when they are used."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any

import typer
from typer.core import TyperCommand

from ..api.entry import Entry
from ..api.errors import PluginError
from ..plugins import host


class _Untouched(TyperCommand):
    """Leaves every argument to the plugin's own function, `--help` and `--` too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args


def add_plugin_commands(app: typer.Typer) -> None:
    """Make every plugin's verbs the app's; one with the name of iclbench's own is left out."""
    app.registered_commands = [c for c in app.registered_commands if c.cls is not _Untouched]
    own = {command.name for command in app.registered_commands}
    own |= {group.name for group in app.registered_groups}
    added = set()
    for plugin, entry in host().entries("command"):
        if entry.name in own:
            problem = f"command {entry.name!r} of {plugin.label} is left out: iclbench has its own"
            if problem not in host().problems:
                host().problems.append(problem)
        elif entry.name not in added:
            added.add(entry.name)
            app.command(entry.name, cls=_Untouched, help=entry.summary)(_deferred(entry))


def _deferred(entry: Entry) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        plugin, function = host().target("command", entry.name)
        if not isfunction(function):
            raise PluginError(
                f"command {entry.name!r} of {plugin.label}: {function!r} is no function"
            )
        inner = typer.Typer(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None
        )
        inner.command(help=entry.summary)(function)
        inner(args=context.args, prog_name=f"iclbench {entry.name}")

    return command
