"""`iclbench view`: the pages of a folder's records in a browser, which follow new records."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from ..api.errors import Interrupted, UsageError
from ..console import is_terminal, report
from .paths import usable_path


def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder of records, or of leaderboards.", parser=usable_path
        ),
    ] = Path("results"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 picks a free one.")
    ] = 8700,
    open_browser: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open a browser; default: only on a terminal."),
    ] = None,
) -> None:
    """Serve the site of a folder on 127.0.0.1; pages reload when records arrive.

    An unreadable record is reported once and skipped. Press Ctrl-C to stop.
    """
    from ..leaderboards.site.live import LiveSite
    from ..leaderboards.site.server import Server
    from ..training.interruption import interruptible

    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    site = LiveSite(folder, report)
    try:
        with interruptible(), Server(site, port) as server:
            site.watch()
            typer.echo(f"{folder}: {server.url} (Ctrl-C stops it)")
            if sys.stdout is not None:
                # A reader of the output learns the address at once.
                sys.stdout.flush()
            if is_terminal(sys.stdout) if open_browser is None else open_browser:
                webbrowser.open(server.url)
            server.serve_forever(poll_interval=0.2)
    except Interrupted:
        # Ctrl-C or a signal to end is how a server stops, so the command did what was asked.
        pass
    finally:
        site.close()
