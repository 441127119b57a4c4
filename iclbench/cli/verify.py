"""`iclbench verify`: check records and measure them again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import IclbenchError, RecordError, UsageError
from .common import Device, Strict, sound_host


def verify(
    records: Annotated[list[Path], typer.Argument(help="Records, or folders of them.")],
    device: Device = "auto",
    strict: Strict = False,
) -> None:
    """Check each record's digest, build its model again and compare every metric.

    Exits with 1 when a metric does not hold, with 2 when a record is damaged.
    """
    sound_host(strict)
    from ..verify import DIGITS, NEAR_FLOOR, RELATIVE
    from ..verify import verify as verify_record

    tolerances = ", ".join(f"{value:g} in {dtype}" for dtype, value in RELATIVE.items())
    typer.echo(
        f"tolerance: relative {tolerances}; within {NEAR_FLOOR:g} times the floor, {DIGITS} digits"
    )
    worst = 0
    for path in _paths(records):
        try:
            checks = verify_record(path, device)
        except IclbenchError as error:
            code = 2 if isinstance(error, RecordError) else error.exit_code
            print(f"iclbench: error: {error}", file=sys.stderr)
            worst = max(worst, code)
            continue
        holds = all(check.holds for check in checks)
        typer.echo(f"{path}: {'holds' if holds else 'does not hold'}")
        for check in checks:
            state = "holds" if check.holds else "DIFFERS"
            typer.echo(
                f"  {check.metric} {check.statistic}: recorded {_show(check.recorded)}, "
                f"measured {_show(check.measured)}: {state}"
            )
        worst = max(worst, 0 if holds else 1)
    if worst:
        raise typer.Exit(worst)


def _show(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.6e}"


def _paths(given: list[Path]) -> list[Path]:
    paths = []
    for path in given:
        found = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not found:
            raise UsageError(f"there are no records in {path}")
        paths += found
    return paths
