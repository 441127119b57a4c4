"""`iclbench verify`: check records and measure them again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import IclbenchError, RecordError
from .common import Device, Strict, chosen_sample, record_paths, sound_host

if TYPE_CHECKING:
    from ..runs.comparison import Check


def verify(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of records.")],
    device: Device = "auto",
    every: Annotated[
        bool, typer.Option("--all", help="Show every number, not only those that differ.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N records over all tasks, always the same."),
    ] = None,
    strict: Strict = False,
) -> None:
    """Check each record's digests, rebuild its model and compare every number.

    Exits with 1 if a number differs, and with 2 if a record is damaged.
    """
    sound_host(strict)
    from ..runs.comparison import DIGITS, NEAR_FLOOR, RELATIVE
    from ..runs.verify import verify as verify_record

    tolerances = ", ".join(f"{value:g} in {dtype}" for dtype, value in RELATIVE.items())
    typer.echo(
        f"tolerance: relative {tolerances}; within {NEAR_FLOOR:g} times the floor, {DIGITS} digits"
    )
    code = holding = 0
    paths = record_paths(records)
    if sample is not None:
        total, paths = len(paths), chosen_sample(paths, sample)
        typer.echo(f"a sample: {len(paths)} of {total} records")
    for path in paths:
        try:
            checks = verify_record(path, device)
        except IclbenchError as error:
            print(f"iclbench: error: {error}", file=sys.stderr)
            code = max(code, 2 if isinstance(error, RecordError) else error.exit_code)
            continue
        _report(path, checks, every)
        holds = all(check.holds for check in checks)
        code = max(code, 0 if holds else 1)
        holding += holds
    if len(paths) > 1:
        typer.echo(f"{holding} of {len(paths)} records hold")
    if code:
        raise typer.Exit(code)


def _report(path: Path, checks: list[Check], every: bool) -> None:
    """Print a summary of one record, and the facts that differ, or two examples if none do."""
    failing = [check for check in checks if not check.holds]
    if failing:
        typer.echo(f"{path}: {len(failing)} of {len(checks)} facts do not hold")
    else:
        typer.echo(f"{path}: all {len(checks)} facts hold")
    examples = [check for check in checks if isinstance(check.measured, float)][:2]
    for check in checks if every else failing or examples:
        state = "holds" if check.holds else "DIFFERS"
        typer.echo(f"  {check.difference}: {state}")
