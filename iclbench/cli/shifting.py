"""`iclbench run --weights RECORD.json --shift …`: evaluations under shift of an existing record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..api.errors import UsageError

if TYPE_CHECKING:
    from ..api.record import Record
    from ..runs.settings import Settings


def shifted(path: str, spec: dict[str, Any], settings: Settings) -> Record:
    """The record with the evaluations that `spec` asks for; nothing is trained.

    Raises UsageError for other fields, which are the record's own.
    """
    from ..runs.shift_records import evaluate_shifts
    from ..runs.shifts import ALL

    others = sorted(spec.keys() - {"weights", "shift"})
    if others:
        raise UsageError(f"a record fixes {', '.join(others)}: give only --weights and --shift")
    shifts = spec.get("shift", (ALL,))
    return evaluate_shifts(path, shifts, settings.device, settings.eval_batch)
