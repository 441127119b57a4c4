"""How a verb ends at SIGINT and SIGTERM."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..api.errors import Interrupted
from ..console import report
from ..training.interruption import interruptible


@contextmanager
def stops_on_signals(continuation: str) -> Iterator[None]:
    """End the verb at a signal within the block, with one line and exit code 130 or 143.

    The line says what was saved, and `continuation` how to go on. A second signal ends the process
    at once.
    """
    try:
        with interruptible(second=signal.SIG_DFL):
            yield
    except Interrupted as error:
        what = f"interrupted: {error}" if str(error) else "interrupted"
        report("; ".join([what, *getattr(error, "__notes__", []), continuation]))
        raise typer.Exit(error.exit_code) from None
