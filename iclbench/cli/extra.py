"""Verbs that plugins add. Their code is imported when they are used."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isfunction
from typing import Any

import typer
from typer.core import TyperCommand

from ..api.entry import Entry
from ..api.errors import PluginError
from ..plugins import host
from .lazy import alone


class _PassThrough(TyperCommand):
    """Passes every argument on to the plugin's function, including `--help` and `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args


def add_plugin_commands(app: typer.Typer) -> None:
    """Add every plugin's verbs to the app, except those named like one of iclbench's own."""
    app.registered_commands = [c for c in app.registered_commands if c.cls is not _PassThrough]
    builtin = {command.name for command in app.registered_commands}
    builtin |= {group.name for group in app.registered_groups}
    added = set()
    for plugin, entry in host().entries("command"):
        if entry.name in builtin:
            problem = f"command {entry.name!r} of {plugin.label} is left out: iclbench has its own"
            if problem not in host().problems:
                host().problems.append(problem)
        elif entry.name not in added:
            added.add(entry.name)
            app.command(entry.name, cls=_PassThrough, help=entry.summary)(_deferred(entry))


def _deferred(entry: Entry) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        plugin, function = host().target("command", entry.name)
        if not isfunction(function):
            raise PluginError(
                f"command {entry.name!r} of {plugin.label}: {function!r} is not a function"
            )
        verb = alone(function, summary=entry.summary)
        # Invoked within the app, so that wrong arguments are told as those of other verbs are.
        with verb.make_context(f"iclbench {entry.name}", list(context.args)) as arguments:
            verb.invoke(arguments)

    return command
