"""Reusing existing records, and saying what has changed since they were made."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.record import Record
from ..console import report
from .code import other_code
from .plan import Plan
from .store import RecordStore


def existing_records(plans: Sequence[Plan], store: RecordStore) -> dict[str, Record]:
    """The records that the plans have already, by id. One line for each says so on stderr.

    A record whose arguments a tuning has chosen since gets that tuning.
    """
    records = {}
    for plan in plans:
        record = store.find(plan.spec)
        if record is not None:
            if plan.tuning is not None and record.tuning != plan.tuning:
                # A proof was of the record without this tuning.
                record = record.model_copy(update={"tuning": plan.tuning, "proof": None}).sealed()
                store.write(record)
            records[plan.spec.id] = record
            changed = other_code(record)
            since = f", made by another version of {', '.join(changed)}" if changed else ""
            run_name = f"{plan.spec.model} on {plan.spec.task}"
            report(
                f"{run_name}: has a record of {record.created}{since}; `run --force` replaces it"
            )
    return records
