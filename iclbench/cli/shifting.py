"""`iclbench run --weights RECORD.json --shift …`: evaluations under shift of an existing record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..api.errors import UsageError
from .boards_of_runs import print_boards_of
from .common import Output, end_with

if TYPE_CHECKING:
    from ..runs.settings import Settings


def show_shifted(path: str, spec: dict[str, Any], settings: Settings, output: Output) -> None:
    """Add the evaluations that `spec` asks for to a record, and show its board; trains nothing.

    Raises UsageError for other fields, which are the record's own.
    """
    from ..runs.shift_records import evaluate_shifts
    from ..runs.shifts import ALL

    others = sorted(spec.keys() - {"weights", "shift"})
    if others:
        raise UsageError(f"a record fixes {', '.join(others)}: give only --weights and --shift")
    shifts = spec.get("shift", (ALL,))
    record = evaluate_shifts(path, shifts, settings.device, settings.eval_batch)
    end_with(print_boards_of([record], record.folder, output))
