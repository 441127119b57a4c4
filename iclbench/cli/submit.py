"""`iclbench submit`: verify records and copy them into published leaderboards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import PLUGIN_FAILURES, UsageError, reason_of
from ..console import report
from .common import Device, Strict, Trust, record_paths, sound_host
from .paths import Records, usable_path

if TYPE_CHECKING:
    from ..leaderboards.submission import Submission
    from ..runs.store import RecordStore


def submit(
    records: Records,
    to: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Leaderboards folder; records go to DIR/records.",
            parser=usable_path,
        ),
    ] = Path("leaderboards"),
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
    from ..files import RECORDS, nearest_existing
    from ..leaderboards.submission import examine_all, is_settled, line_of, summary
    from ..runs.store import RecordStore

    paths = record_paths(records)
    store = RecordStore(to / RECORDS)
    existing = nearest_existing(store.folder)
    if not existing.is_dir():
        raise UsageError(f"{existing} is a file: records can't be copied into it")
    if held_out:
        paths = [path for path in paths if not is_settled(path, store)]
        if not paths:
            typer.echo("no published record lacks a held-out evaluation")
            return
    accepted, refused = examine_all(paths, store, device, trusted=trusted)
    if sys.stdout.isatty():
        for submission in accepted:
            typer.echo(line_of(submission))
    else:
        typer.echo(summary(accepted, refused), nl=False)
    for reason in refused:
        report(f"error: {reason}")
    if accepted and not check:
        refused += _publish(accepted, store, held_out)
    if refused:
        raise typer.Exit(2)


def _publish(accepted: list[Submission], store: RecordStore, held_out: bool) -> list[str]:
    """Copy the accepted records; returns the reasons why some could not be copied."""
    from ..files import require_writable
    from ..leaderboards.submission import add_held_out, publish
    from ..runs.heldout import draw_salt, held_out_path

    require_writable(store.folder)
    failures: list[str] = []
    for submission in accepted:
        try:
            target = publish(submission, store)
            state = "copied to" if submission.new else "already published:"
            print(f"{state} {target}", file=sys.stderr)
            if held_out and add_held_out(submission, target, draw_salt()) is not None:
                print(f"held out: {held_out_path(target)}", file=sys.stderr)
        except PLUGIN_FAILURES as error:
            failures.append(f"{submission.path}: {reason_of(error)}")
            report(f"error: {failures[-1]}")
    return failures
