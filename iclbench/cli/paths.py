"""Paths on the command line: an empty one, mostly of a variable without a value, is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files import path_of


def path_text(text: str) -> str:
    """The text of a path, which may begin with ~; raises typer's BadParameter if it is empty.

    `Path` would take that for the working directory. A shell leaves the ~ of `--out=~/x` alone.
    """
    if not text:
        raise typer.BadParameter("the path is empty; use `.` for the working directory")
    return str(path_of(text)) if text.startswith("~") else text


def usable_path(text: str | Path) -> Path:
    """The path in a text, or a default; raises typer's BadParameter for an empty text."""
    return Path(path_text(text) if isinstance(text, str) else text)


Folders = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FOLDER",
        help="Folders of records, combined.  [default: results, or the published records]",
        parser=usable_path,
    ),
]
SameFolder = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Same as FOLDER, for consistency with other commands.",
        parser=usable_path,
    ),
]
Records = Annotated[
    list[Path],
    typer.Argument(metavar="PATH", help="Records, or folders of records.", parser=usable_path),
]
