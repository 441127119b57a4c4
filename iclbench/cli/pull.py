"""`iclbench pull`: records or a task's prompts from the hub or a folder, after checking them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import counted, report
from .common import Strict, sound_host
from .interruption import stops_on_signals
from .paths import path_text, usable_path

Repository = Annotated[
    str,
    typer.Argument(
        metavar="USER/NAME|datasets/USER/NAME|FOLDER",
        help="A model repository, a dataset, or a folder, such as ./copy.",
        parser=path_text,
    ),
]


def pull(
    source: Repository,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Output folder.  [default: results, or for prompts the source's name]",
            parser=usable_path,
        ),
    ] = None,
    verify: Annotated[
        bool | None,
        typer.Option(
            "--verify/--no-verify",
            help="Measure again; default: yes, unless there are several records.",
        ),
    ] = None,
    max_size: Annotated[
        float, typer.Option(min=0, metavar="GB", help="Maximum total size.")
    ] = 10.0,
    strict: Strict = False,
) -> None:
    """Copy published records or prompts into a folder if all checks pass.

    Digests, sizes, names and paths are always checked. Verifying also measures each model again, or
    generates each prompt again. If anything is wrong, nothing is copied.
    """
    sound_host(strict)
    from ..exchange.pull import pull as pull_checked

    with stops_on_signals("pull again"):
        pulled = pull_checked(source, out, verify=verify, max_size=max_size)
    if (export := pulled.export) is not None:
        prompts = counted(export.prompts, "prompt")
        typer.echo(f"{pulled.folder}: {prompts} of {export.task} v{export.task_version}")
        return
    for path in pulled.records:
        typer.echo(path)
    for name in pulled.left_out:
        report(f"left out: {name}, which is not named like a record, MODEL-ID.json")
    done = "verified" if pulled.verified else "not verified: `iclbench verify` measures them again"
    typer.echo(f"{counted(len(pulled.records), 'record')}, {done}")
