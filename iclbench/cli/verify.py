"""`iclbench verify`: check records, measure them again and, if asked, train them again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..api.errors import IclbenchError, problem_with
from ..console import report
from .common import Device, Strict, chosen_sample, record_paths, sound_host

if TYPE_CHECKING:
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
    code = holding = 0
    paths = record_paths(records)
    if sample is not None:
        total, paths = len(paths), chosen_sample(paths, sample)
        typer.echo(f"a sample: {len(paths)} of {total} records")
    for path in paths:
        try:
            checks = _verify(path, device, retrain, write)
        except Exception as error:
            if os.environ.get("ICLBENCH_DEBUG"):
                raise
            report(f"error: {problem_with(path, error)}")
            code = max(code, error.exit_code if isinstance(error, IclbenchError) else 2)
            continue
        _report(path, checks, every)
        holds = all(check.holds for check in checks)
        code = max(code, 0 if holds else 1)
        holding += holds
    if len(paths) > 1:
        typer.echo(f"{holding} of {len(paths)} records hold")
    if code:
        raise typer.Exit(code)


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


def _report(path: Path, checks: list[Check], every: bool) -> None:
    """Print a summary of one record, the facts that differ or two examples, and the claims."""
    from ..runs.code import stale_code
    from ..runs.facts import claims
    from ..runs.store import read_record

    failing = [check for check in checks if not check.holds]
    if failing:
        typer.echo(f"{path}: {len(failing)} of {len(checks)} facts do not hold")
    else:
        typer.echo(f"{path}: all {len(checks)} facts hold")
    examples = [check for check in checks if isinstance(check.measured, float)][:2]
    for check in checks if every else failing or examples:
        state = "holds" if check.holds else "DIFFERS"
        typer.echo(f"  {check.difference}: {state}")
    record = read_record(path)
    claimed = "; ".join(f"{name}: {text}" for name, text in claims(record).items())
    typer.echo(f"  claimed: {claimed}")
    stale = stale_code(record)
    if stale:
        typer.echo(f"  stale: made by other code of {', '.join(stale)}; --write says that it holds")
