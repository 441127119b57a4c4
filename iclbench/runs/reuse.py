"""Reusing existing records, and saying what has changed since they were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from ..api.errors import RecordError
from ..api.record import Record
from ..console import report
from .code import other_code
from .plan import Plan
from .shifts import asked_shifts, present_shifts
from .store import RecordStore, RunName


class Records(Protocol):
    """Where a run's record may be, such as a store."""

    def find(self, spec: RunName) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""


@dataclass(frozen=True)
class Standing:
    """How a run's record stands. A run skips a whole one, and a damaged one stops it."""

    state: Literal["missing", "incomplete", "damaged", "whole"]
    #: The shifts that an incomplete one was not evaluated under.
    missing_shifts: tuple[str, ...] = ()
    #: Why it is damaged.
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to run."""
        return self.state == "whole"

    @property
    def is_missing(self) -> bool:
        """Whether there is no record at all."""
        return self.state == "missing"

    @property
    def to_run(self) -> bool:
        """Whether there is something to run: the run, or shifts that its record lacks."""
        return self.state in {"missing", "incomplete"}


def standing(records: Records, run: RunName, shifts: Iterable[str] = ()) -> Standing:
    """How the record of a run stands that is also asked for under these shifts."""
    try:
        record = records.find(run)
    except RecordError as error:
        return Standing("damaged", problem=str(error))
    if record is None:
        return Standing("missing")
    present = {*present_shifts(record)}
    lacking = tuple(name for name in shifts if name not in present)
    return Standing("incomplete" if lacking else "whole", lacking)


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
            added = missing_shifts(plan, record)
            then = f"adding shifts: {', '.join(added)}" if added else "`run --force` replaces it"
            run_name = f"{plan.spec.model} on {plan.spec.task}"
            report(f"{run_name}: has a record of {record.created}{since}; {then}")
    return records


def missing_shifts(plan: Plan, record: Record) -> list[str]:
    """The shifts that a plan asks for and its record was not evaluated under."""
    present = present_shifts(record)
    return [name for name in asked_shifts(plan) if name not in present]


def replacing_record(plan: Plan, store: RecordStore) -> Plan:
    """The plan, with the tuning of the record that it replaces, and asking for its shifts too.

    Neither is part of the record's run, so running it again would lose them. A damaged record has
    none.
    """
    try:
        record = store.find(plan.spec)
    except RecordError:
        record = None
    if record is None:
        return plan
    plan = asking_too(plan, present_shifts(record))
    return replace(plan, tuning=plan.tuning or record.tuning)


def asking_too(plan: Plan, shifts: Iterable[str]) -> Plan:
    """The plan, asking for these shifts of its task too."""
    wanted = {*shifts, *asked_shifts(plan)}
    names = tuple(name for name in plan.task.shifts if name in wanted)
    request = plan.request.model_copy(update={"shift": names}) if names else plan.request
    return replace(plan, request=request)
