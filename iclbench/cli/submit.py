"""`iclbench submit`: verify records and copy them into published leaderboards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import is_terminal, report
from ..files import LEADERBOARDS
from ..sweeps.record_paths import record_paths
from .common import Device, Strict, Trust, sound_host
from .paths import Records, usable_path

if TYPE_CHECKING:
    from ..leaderboards.submission import Submission


def submit(
    records: Records,
    to: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Leaderboards folder; records go to DIR/records.",
            parser=usable_path,
        ),
    ] = Path(LEADERBOARDS),
    device: Device = "auto",
    check: Annotated[
        bool, typer.Option("--check", help="Only report what would be refused; copy nothing.")
    ] = False,
    held_out: Annotated[
        bool,
        typer.Option(
            "--held-out",
            help="Also evaluate on newly drawn prompts; of published records, only those that lack "
            "such an evaluation. For maintainers only.",
        ),
    ] = False,
    trusted: Trust = False,
    strict: Strict = False,
) -> None:
    """Verify records, copy them into the leaderboards, and print a summary.

    Where the output is redirected, the summary is Markdown, as for a pull request.
    A refused record does not stop the others. Exits with 2 if any record is refused.
    """
    sound_host(strict)
    from ..leaderboards.submission import examine_all, is_settled, publish_all, store_in

    paths = record_paths(records)
    store = store_in(to)
    if held_out:
        paths = [path for path in paths if not is_settled(path, store)]
        if not paths:
            typer.echo("no published record lacks a held-out evaluation")
            return
    accepted, refused = examine_all(paths, store, device, trusted=trusted)
    _print(accepted, refused)
    if accepted and not check:
        _, failures = publish_all(accepted, store, held_out=held_out, say=_say)
        for reason in failures:
            report(f"error: {reason}")
        refused += failures
    if refused:
        raise typer.Exit(2)


def _print(accepted: list[Submission], refused: list[str]) -> None:
    """Print a line a record on a terminal, Markdown elsewhere, and the reasons of refusals."""
    from ..leaderboards.submission import line_of, summary

    if is_terminal(sys.stdout):
        for submission in accepted:
            typer.echo(line_of(submission))
    else:
        typer.echo(summary(accepted, refused), nl=False)
    for reason in refused:
        report(f"error: {reason}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
