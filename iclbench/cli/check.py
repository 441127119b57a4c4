"""`iclbench check PACKAGE`: the conformance kit on every entry of a package's plugins."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..console import show_traceback
from .common import Strict, sound_host


def check(
    packages: Annotated[
        list[str],
        typer.Argument(metavar="PACKAGE", help="Distribution, entry point or module."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
    strict: Strict = False,
) -> None:
    """Check that a package's plugins conform to their interfaces.

    All entries are checked: models on one task of every form, tasks, solvers, recipes, suites,
    metrics, graders, executors, trackers, commands, and hooks that observe runs. Checks make tiny
    runs and verify their records.
    Exits with 1 if a check fails; ICLBENCH_DEBUG=1 shows its traceback.
    """
    sound_host(strict)
    from ..display.terminal import print_hanging
    from ..kit.cases import cases_of, run_case

    cases = [case for package in packages for case in cases_of(package)]
    outcomes = []
    for case in cases:
        outcome = run_case(case)
        outcomes.append(outcome)
        if not as_json:
            print_hanging(f"{outcome.status:<12} {case.label} ({outcome.text})", 13)
        if outcome.error is not None:
            show_traceback(outcome.error)
    counts = {status: sum(o.status == status for o in outcomes) for status in
              ("ok", "not checked", "failed")}  # fmt: skip
    if as_json:
        rows = [
            {**{k: v for k, v in vars(o.case).items() if k != "check"}, "status": o.status,
             "text": o.text, "seconds": round(o.seconds, 3)}
            for o in outcomes
        ]  # fmt: skip
        typer.echo(json.dumps(rows, indent=2))
    else:
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    if counts["failed"]:
        raise typer.Exit(1)
