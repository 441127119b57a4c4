"""`iclbench verify`: check records, measure them again and, if asked, train them again."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.names import visible
from ..console import one_line, report
from ..display.table import Output
from ..files import require_writable
from ..sweeps.record_paths import record_paths
from .common import (
    Columns,
    Device,
    Sort,
    Strict,
    Style,
    Trust,
    chosen_sample,
    show_table,
    sound_host,
)
from .paths import Records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..display.table import Table
    from ..sweeps.verification import Verified, VerifyRequest


def verify(
    records: Records,
    device: Device = "auto",
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Records to verify at once, in processes with one thread each.  [default: number "
            "of cores or GPUs if there are many records; 1 with --retrain]",
        ),
    ] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Also retrain, and compare claimed facts.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write the proof into records that pass.")
    ] = False,
    trusted: Trust = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show every fact, not only those that differ.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Verify N records of all tasks, always the same."),
    ] = None,
    style: Style = "table",
    columns: Columns = None,
    sort: Sort = None,
    strict: Strict = False,
) -> None:
    """Check each record's digests, rebuild its model and compare every fact that can be computed.

    Facts that can't be recomputed, such as dates and times, are listed as claimed. Exits with 1 if
    a fact differs, and with 2 if a record is damaged or can't be verified. With another --format,
    --columns or --sort, print one table with a line per record, or per fact with --all.
    """
    from ..display.views import waiting

    sound_host(strict)
    with waiting("loading torch"):
        from ..sweeps.verification import VerifyRequest

    output = Output(style, columns, sort)
    paths = record_paths(records)
    chosen = paths if sample is None else chosen_sample(paths, sample)
    _require_folders(chosen, write)
    request = VerifyRequest(device, retrain, write, trusted)
    count = _workers(len(chosen), request, workers)
    summary = Summary(len(chosen), every, quiet=not output.is_default)
    summary.table().arranged(output)  # refuses unknown columns before the work
    if output.is_default:
        _print_head(len(chosen), len(paths))
    _verify(chosen, request, count, summary)
    if not output.is_default:
        show_table(summary.table(), output)
    elif len(chosen) > 1 or any(path.is_dir() for path in records):
        summary.show()
    if summary.code:
        raise typer.Exit(summary.code)


def _require_folders(paths: list[Path], write: bool) -> None:
    """Raise RecordError where no record has its files, instead of a line for each.

    Raises UsageError where records can't be written into their folders.
    """
    from ..leaderboards.reading import require_objects
    from ..runs.objects import OBJECTS_FOLDER, Objects

    folders = {Objects.beside(path).records for path in paths}
    if len(paths) > 1 and not any((folder / OBJECTS_FOLDER).is_dir() for folder in folders):
        require_objects(min(folders))
    for folder in {path.parent for path in paths if path.exists()} if write else ():
        require_writable(folder)


def _workers(records: int, request: VerifyRequest, workers: int | None) -> int:
    """How many processes verify; raises UsageError for a device that they can't use."""
    from ..devices import require_devices
    from ..sweeps.verification import default_workers

    count = workers or default_workers(records, request)
    require_devices(request.device, count)
    return count


def _verify(paths: list[Path], request: VerifyRequest, workers: int, summary: Summary) -> None:
    """Verify records and print how each ends."""
    from ..display.progress import ProgressDisplay
    from ..sweeps.verification import verify_all

    with closing(verify_all(paths, request, workers)) as outcomes:
        for number, path in enumerate(paths, start=1):
            # Closed before what the record gave is printed, which may go elsewhere.
            with ProgressDisplay(len(paths)) as display:
                display.begin(number, path.name, "verifying")
                outcome = next(outcomes)
            summary.add(outcome)


def _print_head(count: int, total: int) -> None:
    """Say how far numbers may differ, and whether this is a sample."""
    from ..display.terminal import print_text
    from ..runs.comparison import DIGITS, NEAR_FLOOR, RELATIVE

    tolerances = ", ".join(f"{value:g} in {dtype}" for dtype, value in RELATIVE.items())
    print_text(
        f"tolerance: relative {tolerances}; within {NEAR_FLOOR:g} times the floor, {DIGITS} digits"
    )
    if count < total:
        typer.echo(f"a sample: {count} of {total} records")


#: The most facts of a record that are listed where they differ, without --all.
MOST_SHOWN = 10


class Summary:
    """Prints each record's outcome and counts them; `every` shows every fact and claim.

    If `quiet`, only the problems are printed, and `table` has the outcomes.
    """

    def __init__(self, total: int, every: bool, quiet: bool) -> None:
        self.total, self.every, self.quiet = total, every, quiet
        self.code = self.holding = self.differing = self.refused = self.facts = 0
        self.outcomes: list[Verified] = []

    def add(self, outcome: Verified) -> None:
        """Print and count a record."""
        self.outcomes += [outcome] if self.quiet else []
        if outcome.problem:
            report(f"error: {outcome.problem}")
            self.refused += 1
            self.code = 2
            return
        failing = outcome.failing
        self.facts += len(outcome.checks)
        self.holding += not failing
        self.differing += bool(failing)
        self.code = max(self.code, 1 if failing else 0)
        if not self.quiet:
            self._print(outcome)

    def _print(self, outcome: Verified) -> None:
        """Print what holds, what doesn't, and what is only claimed.

        That other code made a record matters only where a fact differs: it may be the reason.
        """
        from ..display.terminal import print_text
        from ..runs.facts import OTHER_CODE

        path, checks, failing = one_line(str(outcome.path)), outcome.checks, outcome.failing
        if failing:
            typer.echo(f"{path}: facts that do not hold: {len(failing):,} of {len(checks):,}")
        else:
            typer.echo(f"{path}: all {len(checks):,} facts hold")
        if outcome.retrained:
            typer.echo(f"  {outcome.retrained}")
        if outcome.stale and (failing or self.every):
            what = f"stale: {OTHER_CODE} {', '.join(outcome.stale)}"
            typer.echo(f"  {what}" if failing else f"  {what}; --write marks it as verified")
        whole = self.every or self.total == 1
        shown = checks if self.every else failing[:MOST_SHOWN]
        for check in shown:
            typer.echo(f"  {check.difference}: {'holds' if check.holds else 'DIFFERS'}")
        if len(shown) < len(failing):
            typer.echo(f"  and {len(failing) - len(shown)} more, which --all lists")
        if whole and not self.every and not failing:
            means = [c for c in checks if c.name.endswith((" mean", " median"))]
            for check in means[:2]:
                typer.echo(f"  such as {check.difference}")
        if whole:
            claimed = {n: text for n, text in outcome.claims.items() if n != OTHER_CODE}
            named = "; ".join(f"{name}: {text}" for name, text in claimed.items())
            print_text(f"  claimed: {visible(named, len(named))}")

    def show(self) -> None:
        """Print the counts."""
        facts = [f"{self.holding} of {self.total} records hold"]
        facts += [f"{self.differing} differ"] if self.differing else []
        facts += [f"{self.refused} can't be verified"] if self.refused else []
        typer.echo(f"{', '.join(facts)} ({self.facts:,} facts)")

    def table(self) -> Table:
        """The outcomes, a line per record, or per fact if every one is shown."""
        from ..display.table import Column, Table

        if self.every:
            names = ("record", "fact", "recorded", "computed", "outcome")
            facts = [line for outcome in self.outcomes for line in _facts_of(outcome)]
            return Table([Column(name, fit="wrap") for name in names], facts)
        columns = (
            Column("record", fit="shorten"),
            Column("outcome"),
            Column("facts", right=True),
            Column("differing", right=True),
            Column("reason", fit="wrap", importance=1),
        )
        return Table(columns, [_row(outcome) for outcome in self.outcomes])


def _facts_of(outcome: Verified) -> Iterator[dict[str, Any]]:
    """A line per fact of a record; one line that says why it can't be verified."""
    path = str(outcome.path)
    if outcome.problem:
        yield {"record": path, "fact": outcome.problem, "outcome": "can't be verified"}
    for check in outcome.checks:
        yield {
            "record": path,
            "fact": check.name,
            "recorded": _plain(check.recorded),
            "computed": _plain(check.measured),
            "outcome": "holds" if check.holds else "differs",
        }


def _plain(value: Any) -> str | float | None:
    """A number or a text as it is, anything else as JSON."""
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else json.dumps(value, default=str)


def _row(outcome: Verified) -> dict[str, Any]:
    """A record's outcome on one line; the reason names the first fact that differs."""
    failing = outcome.failing
    word = "can't be verified" if outcome.problem else "differs" if failing else "holds"
    return {
        "record": str(outcome.path),
        "outcome": word,
        "facts": len(outcome.checks),
        "differing": len(failing),
        "reason": outcome.problem or (failing[0].difference if failing else ""),
    }
