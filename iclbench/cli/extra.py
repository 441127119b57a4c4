"""Verbs that plugins add; their code is imported when they are used."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable

import typer

from ..errors import PluginError
from ..plugins import Entry, host, report


def add_plugin_commands(app: typer.Typer) -> None:
    """Add every plugin's verbs; one with the name of a verb of iclbench's own is left out."""
    own = {command.name for command in app.registered_commands}
    own |= {group.name for group in app.registered_groups}
    for plugin, entry in host().entries("command"):
        if entry.name in own:
            report(f"command {entry.name!r} of {plugin.label} is left out: the name is taken")
            continue
        own.add(entry.name)
        app.command(
            entry.name,
            help=entry.summary,
            add_help_option=False,
            context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
        )(_deferred(entry))


def _deferred(entry: Entry) -> Callable[[typer.Context], None]:
    def command(context: typer.Context) -> None:
        target = entry.target
        try:
            function = pkgutil.resolve_name(target) if isinstance(target, str) else target
        except Exception as error:
            raise PluginError(f"command {entry.name!r} fails: {error}") from error
        inner = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        inner.command(help=entry.summary)(function)
        inner(args=context.args, prog_name=f"iclbench {entry.name}")

    return command
