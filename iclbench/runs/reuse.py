"""Reusing existing records, and saying what has changed since they were made."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.record import Record
from ..console import report
from .plan import Plan
from .report import plugin_references
from .store import RecordStore


def changed_plugins(plan: Plan, record: Record) -> list[str]:
    """The record's plugins whose version or source has changed since."""
    current = {plugin.name: plugin for plugin in plugin_references(plan)}
    return [p.name for p in record.plugins if p.name in current and current[p.name] != p]


def existing_records(plans: Sequence[Plan], store: RecordStore) -> dict[str, Record]:
    """The records that the plans have already, by id. One line for each says so on stderr."""
    records = {}
    for plan in plans:
        record = store.find(plan.spec)
        if record is not None:
            records[plan.spec.id] = record
            changed = changed_plugins(plan, record)
            since = f", made by another version of {', '.join(changed)}" if changed else ""
            run_name = f"{plan.spec.model} on {plan.spec.task}"
            report(f"{run_name}: has a record of {record.created}{since}; --force runs it again")
    return records
