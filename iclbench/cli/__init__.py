"""The command line, one verb a file.

Exit codes: 0 done, 1 a run failed, 2 bad usage; `run` and `sweep`: 130 SIGINT, 143 SIGTERM.

It may import every other package. Modules that need torch are imported inside a verb, so that
`--help` is fast.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from typing import Annotated

import typer

from ..api.errors import IclbenchError
from . import describe, leaderboard, ls, plugins, run, show, submit, sweep, verify
from .extra import add_plugin_commands

app = typer.Typer(
    name="iclbench",
    help="A benchmark harness for in-context learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=False,
)
app.command("run", short_help="Run models on tasks and rank them.")(run.run)
app.command("sweep", short_help="Run the grids of a file.")(sweep.sweep)
app.command("ls", short_help="List models, tasks, recipes and other entries.")(ls.ls)
app.command("describe", short_help="Show the arguments of one entry.")(describe.describe)
app.command("plugins", short_help="List all plugins, including broken ones.")(plugins.plugins)
app.add_typer(leaderboard.app, name="leaderboard")
app.command("show", short_help="Show the numbers and curves of records.")(show.show)
app.command("verify", short_help="Check records and measure them again.")(verify.verify)
app.command("submit", short_help="Put records into published leaderboards.")(submit.submit)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"iclbench {metadata.version('iclbench')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """A benchmark harness for in-context learning."""


def main() -> None:
    """Run the command line. Errors are printed as one line, without a traceback."""
    try:
        add_plugin_commands(app)
        app()
    except IclbenchError as error:
        print(f"iclbench: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except Exception as error:
        if os.environ.get("ICLBENCH_DEBUG"):
            raise
        reason = f"{type(error).__name__}: {error}"
        print(f"iclbench: error: {reason} (ICLBENCH_DEBUG=1 shows where)", file=sys.stderr)
        sys.exit(1)
