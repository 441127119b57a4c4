"""`iclbench verify`: check records, measure them again and, if asked, train them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from ..api.errors import IclbenchError, problem_with
from ..console import report
from .common import Device, Strict, chosen_sample, record_paths, sound_host

if TYPE_CHECKING:
    from rich.status import Status

    from ..api.record import Record
    from ..runs.comparison import Check


def verify(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of records.")],
    device: Device = "auto",
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again too, and compare what is only claimed.")
    ] = False,
    write: Annotated[
        bool,
        typer.Option("--write", help="Write into records that hold that they do, with this code."),
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show every fact, not only those that differ.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N records over all tasks, always the same."),
    ] = None,
    strict: Strict = False,
) -> None:
    """Check each record's digests, rebuild its model and compare every fact that can be computed.

    Facts about the past are shown as claimed. Exits with 1 if a fact differs, and with 2 if a
    record is damaged or can't be verified.
    """
    sound_host(strict)
    from ..runs.comparison import DIGITS, NEAR_FLOOR, RELATIVE

    tolerances = ", ".join(f"{value:g} in {dtype}" for dtype, value in RELATIVE.items())
    typer.echo(
        f"tolerance: relative {tolerances}; within {NEAR_FLOOR:g} times the floor, {DIGITS} digits"
    )
    paths = record_paths(records)
    if sample is not None:
        total, paths = len(paths), chosen_sample(paths, sample)
        typer.echo(f"a sample: {len(paths)} of {total} records")
    summary = Summary(len(paths), every)
    with Progress(len(paths)) as progress:
        for path in paths:
            progress.begin(path)
            try:
                checks = _verify(path, device, retrain, write)
            except Exception as error:
                if os.environ.get("ICLBENCH_DEBUG"):
                    raise
                progress.pause()
                report(f"error: {problem_with(path, error)}")
                summary.refuse(error)
                continue
            progress.pause()
            summary.add(path, checks)
    if len(paths) > 1:
        summary.show()
    if summary.code:
        raise typer.Exit(summary.code)


def _verify(path: Path, device: str, retrain: bool, write: bool) -> list[Check]:
    """All checks of one record; trains again only where everything else holds."""
    from ..runs.verify import verify as verify_record

    checks = verify_record(path, device)
    if not all(check.holds for check in checks):
        return checks
    record = None
    if retrain:
        from ..runs.retraining import retrain as train_again

        outcome = train_again(path, device)
        checks += outcome.checks
        record = outcome.record
    elif write:
        record = _evaluated(path, device)
    if write and record is not None:
        from ..runs.proofs import write_proof

        write_proof(path, record)
    return checks


def _evaluated(path: Path, device: str) -> Record | None:
    """The record with its proof renewed; None where it says more, that it was trained again."""
    from ..runs.proofs import evaluated
    from ..runs.store import read_record

    record = read_record(path)
    if record.proof is not None and record.proof.kind == "retrained":
        return None
    return evaluated(record, device)


class Summary:
    """Prints each record's outcome and counts them; `every` shows every fact and claim."""

    def __init__(self, total: int, every: bool) -> None:
        self.total, self.every = total, every
        self.code = self.holding = self.differing = self.refused = self.facts = 0

    def refuse(self, error: Exception) -> None:
        """Count a record that can't be verified."""
        self.refused += 1
        self.code = max(self.code, error.exit_code if isinstance(error, IclbenchError) else 2)

    def add(self, path: Path, checks: list[Check]) -> None:
        """Print and count a record that was verified.

        That other code made a record matters only where a fact differs: it may be the reason.
        """
        from ..runs.code import stale_code
        from ..runs.facts import OTHER_CODE, claims
        from ..runs.store import read_record

        failing = [check for check in checks if not check.holds]
        self.facts += len(checks)
        self.holding += not failing
        self.differing += bool(failing)
        self.code = max(self.code, 1 if failing else 0)
        if failing:
            typer.echo(f"{path}: {len(failing)} of {len(checks)} facts do not hold")
        else:
            typer.echo(f"{path}: all {len(checks)} facts hold")
        examples = [check for check in checks if isinstance(check.measured, float)][:2]
        whole = self.every or self.total == 1
        for check in checks if self.every else failing or (examples if whole else []):
            typer.echo(f"  {check.difference}: {'holds' if check.holds else 'DIFFERS'}")
        record = read_record(path)
        stale = stale_code(record) if failing or self.every else []
        if whole:
            claimed = {n: text for n, text in claims(record).items() if n != OTHER_CODE}
            shown = "; ".join(f"{name}: {text}" for name, text in claimed.items())
            typer.echo(f"  claimed: {shown}")
        if stale:
            what = f"stale: {OTHER_CODE} {', '.join(stale)}"
            typer.echo(f"  {what}" if failing else f"  {what}; --write says that it holds")

    def show(self) -> None:
        """Print the counts."""
        facts = [f"{self.holding} of {self.total} records hold"]
        facts += [f"{self.differing} differ"] if self.differing else []
        facts += [f"{self.refused} can't be verified"] if self.refused else []
        typer.echo(f"{', '.join(facts)} ({self.facts:,} facts)")


class Progress:
    """Says on a terminal which record is verified and how many there are; nothing elsewhere."""

    def __init__(self, total: int) -> None:
        from ..display.views import on_terminal

        self.total, self.number = total, 0
        self._status: Status | None = None
        if on_terminal() and total > 1:
            from rich.console import Console

            self._status = Console(stderr=True).status("")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.pause()

    def begin(self, path: Path) -> None:
        """Show a record."""
        self.number += 1
        if self._status is not None:
            self._status.update(Text(f"{self.number} of {self.total}: {path.name}"))
            self._status.start()

    def pause(self) -> None:
        """Clear the line, so that something can be printed."""
        if self._status is not None:
            self._status.stop()
