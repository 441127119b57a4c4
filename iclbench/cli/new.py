"""`iclbench new KIND NAME`: write a plugin that passes its own tests."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .paths import usable_path


def new(
    kind: Annotated[
        str,
        typer.Argument(metavar="architecture|task|solver|metric|executor", help="Kind of plugin."),
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Plugin name: lower-case words joined by hyphens.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder to create.  [default: iclbench-NAME]",
            parser=usable_path,
        ),
    ] = None,
) -> None:
    """Create a plugin: a distribution with code, a README and passing tests."""
    from ..kit.scaffold import write_plugin

    folder = out or Path(f"iclbench-{name}")
    for path in write_plugin(kind, name, folder):
        typer.echo(path)
    typer.echo(f"\nNext:\n  cd {shlex.quote(str(folder))}\n  pip install -e '.[test]'\n  pytest")
