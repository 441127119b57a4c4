"""`iclbench pull`: records or a task's prompts from the hub or a folder, after checking them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import counted, report
from .common import Strict, sound_host
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
            help="Default: results for records, the source's name for prompts.",
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
    from ..exchange.hub import Hub, repository
    from ..exchange.pulling import left_out, listing, pull_export, pull_records
    from ..exchange.sources import FolderSource, HubSource, Source

    on_hub = repository(source)
    given: Source
    if on_hub is None:
        given = FolderSource(Path(source).expanduser())
    else:
        given = HubSource(Hub(), on_hub[0] or "model", on_hub[1])
    listed = listing(given)
    most = max_size * 1e9
    if listed.document is not None:
        folder = out or Path(given.name.rstrip("/").rsplit("/", maxsplit=1)[-1])
        export = pull_export(given, listed, folder, measure=verify is not False, most=most)
        typer.echo(
            f"{folder}: {counted(export.prompts, 'prompt')} of {export.task} v{export.task_version}"
        )
        return
    measure = len(listed.records) == 1 if verify is None else verify
    paths = pull_records(given, listed, out or Path("results"), measure=measure, most=most)
    for path in paths:
        typer.echo(path)
    for name in left_out(listed):
        report(f"left out: {name}, which is not named like a record, MODEL-ID.json")
    done = "verified" if measure else "not verified: `iclbench verify` measures them again"
    typer.echo(f"{counted(len(paths), 'record')}, {done}")
