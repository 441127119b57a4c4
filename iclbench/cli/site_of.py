"""`iclbench leaderboard site`: static pages from records alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..api.errors import UsageError
from ..files import LEADERBOARDS
from .common import end_with
from .paths import usable_path


def site(
    out: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Output folder: new, empty, or an earlier site.", parser=usable_path
        ),
    ],
    folders: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help=f"Leaderboards folder, with records in DIR/records; default: {LEADERBOARDS}.",
            parser=usable_path,
        ),
    ] = None,
    docs: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address that pages link to as documentation.")
    ] = "",
    source: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address that pages link to as source code.")
    ] = "",
) -> None:
    """Write a static site of all records in a folder; it needs no server and no network.

    An ADDRESS begins with https://, or is a path relative to the site's folder.
    """
    from ..leaderboards.site.build import make_site
    from ..leaderboards.site.links import Links

    folder, *others = folders or [Path(LEADERBOARDS)]
    if others:
        raise UsageError(
            "a site has one folder of leaderboards: `iclbench submit RECORD --to FOLDER` puts "
            "records of yours beside others"
        )
    problems: list[str] = []
    pages = make_site(out, folder, problems.append, Links(docs, source))
    typer.echo(f"{pages} pages: {out / 'index.html'}")
    end_with(problems)
