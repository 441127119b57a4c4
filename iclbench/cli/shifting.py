"""`iclbench run --weights RECORD.json --shift …`: evaluations under shift of an existing record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from ..api.errors import UsageError
from ..display.table import Output
from .boards_of_runs import print_boards_of
from .common import end_with, options_given

if TYPE_CHECKING:
    from ..runs.settings import Settings


#: The options that have a meaning here.
USED = {"weights", "shift", "device", "eval_batch", "style", "columns", "sort", "strict"}


def show_shifted(
    context: typer.Context, spec: dict[str, Any], settings: Settings, output: Output
) -> None:
    """Add the evaluations that `spec` asks for to a record, and show its board; trains nothing.

    Raises UsageError for other fields, which are the record's own, and for an option that would be
    ignored.
    """
    from ..runs.shift_records import evaluate_shifts

    others = sorted(spec.keys() - {"weights", "shift"})
    if others:
        raise UsageError(f"a record fixes {', '.join(others)}: give only --weights and --shift")
    for name, option in options_given(context).items():
        if name not in USED:
            raise UsageError(
                f"{option} has no meaning here: without --model, the record of --weights is "
                "evaluated under --shift"
            )
    if "shift" not in spec:
        raise UsageError("without --model, --weights RECORD.json needs --shift NAME, or all")
    path, shifts = spec["weights"], spec["shift"]
    record = evaluate_shifts(path, shifts, settings.device, settings.eval_batch)
    end_with(print_boards_of([record], record.folder, output))
