"""`iclbench push`: a record, a board or a task's prompts into a repository of the hub, or a folder.

Nothing is uploaded before it was shown and confirmed.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import UsageError
from ..console import counted, is_terminal, report
from .common import Strict, sound_host
from .interruption import stops_on_signals
from .paths import path_text, usable_path

if TYPE_CHECKING:
    from ..exchange.hub import Hub, HubState
    from ..exchange.packing import Package

#: The most files that are shown one by one, unless all are asked for.
MOST_SHOWN = 30


def push(
    what: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="A record, a folder of records, or a folder from `iclbench export`.",
            parser=usable_path,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="USER/NAME|FOLDER",
            help="A Hugging Face repository, or a new folder, such as ./copy.", parser=path_text,
        ),
    ],
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the records of this task.")
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make a new repository private.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show every file.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Upload without asking.")] = False,
    strict: Strict = False,
) -> None:  # fmt: skip
    """Publish a record as a model repository, or records or a task's prompts as a dataset.

    The upload is one commit. The files are listed first, and you are asked to confirm. The token
    comes from HF_TOKEN or `hf auth login`. Exits with 2 if a damaged record was left out.
    """
    sound_host(strict)
    from ..exchange.hub import Hub, repository
    from ..exchange.packing import pack
    from ..files import path_of

    on_hub = repository(to)
    if on_hub is None and private:
        raise UsageError(f"--private is for repositories of the hub, and {to} is a folder")
    problems: list[str] = []
    try:
        package = pack(what, problems.append, task)
    finally:  # whoever is asked about the upload must know
        for problem in problems:
            report(f"error: {problem}")
    if on_hub is None:
        _copy(package, what, path_of(to), every)
    else:
        kind, name = on_hub
        if kind is not None and kind != package.kind:
            raise UsageError(f"{what} is a record and needs a model repository: --to {name}")
        _upload(Hub(), package, name, private=private, every=every, yes=yes, whole=not problems)
    if problems:
        raise typer.Exit(2)


def _copy(package: Package, source: Path, folder: Path, every: bool) -> None:
    """Write the files of the repository into a new or empty folder, outside of the source."""
    from ..files import is_free, staged

    if not is_free(folder):
        raise UsageError(f"{folder} holds files: give a new folder")
    if folder.resolve().is_relative_to(source.resolve()):
        raise UsageError(f"{folder} is inside {source}: give a folder outside of it")
    _show(package, [], every)
    with stops_on_signals("push again"), staged(folder) as new:
        for path in package.files:
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            with (new / path).open("wb") as file:
                file.writelines(package.chunks(path))
    # Without ./ it might be a repository's name, or an option.
    name = str(folder) if folder.is_absolute() else f"./{folder}"
    typer.echo(f"written to {folder}; iclbench pull {shlex.quote(name)} --out NEW reads it")


def _upload(
    hub: Hub, package: Package, name: str, *, private: bool, every: bool, yes: bool, whole: bool
) -> None:
    """Show the commit, ask, and make it. One that is not `whole` deletes nothing."""
    hub.require_login()
    state = hub.state(package.kind, name)
    if private and state is not None and not state.private:
        raise UsageError(
            f"{name} exists and is public, and --private makes only new repositories private: "
            "change its visibility on the hub, or leave --private out"
        )
    # The repository may have a sound copy of what is damaged here.
    deleted = _outdated(package, state) if whole else []
    prefix = "datasets/" if package.kind == "dataset" else ""
    seen = state.private if state else private
    typer.echo(
        f"{hub.endpoint}/{prefix}{name}: {'private' if seen else 'public'}, "
        f"{'exists' if state else 'new'}; {package.title}"
    )
    _show(package, deleted, every, {entry.path for entry in state.files} if state else set())
    if not yes:
        if not is_terminal(sys.stdin):
            raise UsageError("nothing was uploaded: add --yes to upload these files")
        if not typer.confirm("Upload this?", err=True):
            report("nothing was uploaded")
            raise typer.Exit(1)
    parent = state.revision if state else None
    address = hub.push(package, name, private=private, deleted=deleted, parent=parent)
    typer.echo(f"uploaded: {address}\niclbench pull {prefix}{name} reads it")


def _outdated(package: Package, state: HubState | None) -> list[str]:
    """The repository's files that iclbench wrote earlier, and that the new commit lacks."""
    from ..exchange.listing import written_by_iclbench

    before = [entry.path for entry in state.files] if state else []
    return sorted(p for p in written_by_iclbench(before) if p not in package.files)


def _show(package: Package, deleted: list[str], every: bool, there: Container[str] = ()) -> None:
    """Print each file with its size; of many, the number and size in each folder.

    Those that are `there` are replaced.
    """
    sizes = {path: package.size(path) for path in sorted(package.files)}
    groups: dict[tuple[str, str], list[int]] = {}
    for path, size in sizes.items():
        in_folder = "/" in path and not every and len(sizes) > MOST_SHOWN
        name = path.split("/")[0] + "/" if in_folder else path
        groups.setdefault(("replace" if path in there else "add", name), []).append(size)
    lines = [
        f"  {verb:<7} {sum(values):>14,} bytes  {name}"
        + f" ({counted(len(values), 'file')}; --all shows them)" * name.endswith("/")
        for (verb, name), values in groups.items()
    ]
    shown = deleted if every else deleted[:MOST_SHOWN]
    lines += [f"  delete                        {path}" for path in shown]
    lines += [f"  delete  {len(deleted) - len(shown):,} more"] if len(shown) < len(deleted) else []
    typer.echo("\n".join(lines))
    typer.echo(f"{len(sizes):,} files, {sum(sizes.values()):,} bytes")
