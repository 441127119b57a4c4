"""`iclbench verify`: check records and measure them again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..api.errors import IclbenchError, RecordError
from .common import Device, Strict, chosen_sample, record_paths, sound_host


def verify(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of them.")],
    device: Device = "auto",
    every: Annotated[
        bool, typer.Option("--all", help="Show every number, not what fails.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Only N of them, over all tasks: always the same."),
    ] = None,
    strict: Strict = False,
) -> None:
    """Check each record's digests, build its model again and compare every number.

    Exits with 1 when a number does not hold, with 2 when a record is damaged.
    """
    sound_host(strict)
    from ..runs.verify import DIGITS, NEAR_FLOOR, RELATIVE
    from ..runs.verify import verify as verify_record

    tolerances = ", ".join(f"{value:g} in {dtype}" for dtype, value in RELATIVE.items())
    typer.echo(
        f"tolerance: relative {tolerances}; within {NEAR_FLOOR:g} times the floor, {DIGITS} digits"
    )
    worst = sound = 0
    paths = record_paths(records)
    if sample is not None:
        every_path, paths = len(paths), chosen_sample(paths, sample)
        typer.echo(f"a sample: {len(paths)} of {every_path} records")
    for path in paths:
        try:
            checks = verify_record(path, device)
        except IclbenchError as error:
            code = 2 if isinstance(error, RecordError) else error.exit_code
            print(f"iclbench: error: {error}", file=sys.stderr)
            worst = max(worst, code)
            continue
        failing = [check for check in checks if not check.holds]
        holds = not failing
        summary = (
            f"{len(failing)} of {len(checks)} numbers do not hold"
            if failing
            else (f"all {len(checks)} numbers hold")
        )
        typer.echo(f"{path}: {summary}")
        for check in checks if every else failing or checks[1:3]:
            state = "holds" if check.holds else "DIFFERS"
            typer.echo(
                f"  {check.name}: recorded {_show(check.recorded)}, "
                f"measured {_show(check.measured)}: {state}"
            )
        worst = max(worst, 0 if holds else 1)
        sound += holds
    if len(paths) > 1:
        typer.echo(f"{sound} of {len(paths)} records hold")
    if worst:
        raise typer.Exit(worst)


def _show(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6g}"
