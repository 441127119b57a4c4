"""The verbs, each imported when it is used, so that `--help` and `ls` start at once."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup

from ..console import report


class Verb(NamedTuple):
    """A verb: its module and function (or its own app of verbs), and a line of help."""

    target: str
    help: str


VERBS = {
    "run": Verb("run:run", "Run models on tasks and rank them."),
    "sweep": Verb("sweep:sweep", "Run the grids in a sweep file."),
    "tune": Verb("tune:tune", "Search for a model's arguments."),
    "campaign": Verb("campaign:campaign", "Run suites in order, within a time limit."),
    "ls": Verb("ls:ls", "List models, tasks, recipes and other entries."),
    "describe": Verb("describe:describe", "Explain an entry and its arguments."),
    "plugins": Verb("plugins:plugins", "List all plugins, including broken ones."),
    "new": Verb("new:new", "Create a plugin that passes its own tests."),
    "check": Verb("check:check", "Check a plugin's conformance."),
    "leaderboard": Verb("leaderboard:app", "Make ranked tables and figures from records."),
    "view": Verb("view:view", "Show a folder's records live in a browser."),
    "show": Verb("show:show", "Show the numbers and curves of records."),
    "compare": Verb("compare:compare", "Compare two records on the same prompts."),
    "verify": Verb("verify:verify", "Check records and measure them again."),
    "submit": Verb("submit:submit", "Add records to the published leaderboards."),
    "export": Verb("export:export", "Write a task's prompts as a dataset."),
    "push": Verb("push:push", "Publish records or prompts on the Hugging Face Hub."),
    "pull": Verb("pull:pull", "Check and copy published records or prompts."),
}


class VerbGroup(TyperGroup):
    """A group that puts the real command in the place of its stand-in when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first argument names."""
        if args and args[0] in VERBS:
            self.commands[args[0]] = _load(args[0])
        command = super().resolve_command(ctx, args)
        # What imports made stays, and is left out of the collection, which `main` has paused.
        gc.freeze()
        gc.enable()
        return command

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; typer would end it at Ctrl-C without a word."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            report("interrupted")
            raise typer.Exit(130) from None


def add_verbs(app: typer.Typer) -> None:
    """Add a stand-in for every verb, which has its name and its line of help."""
    for name, verb in VERBS.items():
        app.command(name, short_help=verb.help)(_stand_in)


def _stand_in() -> None:
    """Do nothing: `VerbGroup` replaces it before it is called."""


def _load(name: str) -> Any:
    module, _, attribute = VERBS[name].target.partition(":")
    target = getattr(importlib.import_module(f".{module}", __package__), attribute)
    return (
        typer.main.get_command(target) if isinstance(target, typer.Typer) else alone(target, name)
    )


def alone(function: Callable[..., Any], name: str | None = None, summary: str | None = None) -> Any:
    """A command of one function."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, help=summary)(function)
    return typer.main.get_command(app)
