"""Running plans one after another on the command line, so that a failure stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..api.errors import (
    PLUGIN_FAILURES,
    IclbenchError,
    Interrupted,
    UsageError,
    is_no_room,
    reason_of,
)
from ..console import report, show_traceback
from ..files import removed_if_empty
from .tuning import Preparation

if TYPE_CHECKING:
    from ..api.record import Record
    from ..runs.plan import Plan


def _why(error: BaseException) -> str:
    """Why a run failed, in a line."""
    if is_no_room(error):
        # What was trained is in the checkpoint, if that could be written.
        return f"{error.filename or 'a file'}: {error.strerror}; no record was written"
    from ..runs.places import place_of

    why = ", at ".join(filter(None, [reason_of(error), place_of(error)]))
    known = isinstance(error, IclbenchError)
    return why + ("" if known else " (ICLBENCH_DEBUG=1 shows the traceback)")


def run_all(
    plans: Sequence[tuple[str, Plan]], prepare: Preparation
) -> tuple[list[Record], dict[str, BaseException]]:
    """The records of named plans, and the errors of the other plans by id.

    A run that fails stops no other.
    """
    from ..display.progress import progress_of_runs
    from ..runs.reuse import replacing_record
    from ..runs.run import run_plans
    from ..runs.store import RecordStore

    records: list[Record] = []
    errors: dict[str, BaseException] = {}
    # A request that is refused leaves no folder.
    with removed_if_empty(prepare.settings.out):
        for number, (name, plan) in enumerate(plans, start=1):
            try:
                tuned = prepare(plan)
                if prepare.settings.force:
                    tuned = replacing_record(tuned, RecordStore(prepare.settings.out))
                with progress_of_runs(len(plans), number, name):
                    records += run_plans([tuned], prepare.settings)
            except Interrupted as error:
                left = sum(not _has_record(later, prepare) for _, later in plans[number:])
                done = len(records) + len(plans) - number - left
                facts = [f"{done} of {len(plans)} runs have records"] * (len(plans) > 1)
                facts += [f"{left} more not started"] * (left > 0)
                message = "; ".join(filter(None, [str(error), *facts]))
                raise Interrupted(error.signal_number, message) from None
            except PLUGIN_FAILURES as error:
                show_traceback(error)
                errors[plan.spec.id] = error
                report(f"error: {name}: {_why(error)}")
    return records, errors


def _has_record(plan: Plan, prepare: Preparation) -> bool:
    """Whether a plan that was not started has nothing left to run."""
    from ..display.dry_run import standing_of

    try:
        return standing_of(plan, prepare.settings, tunes=prepare.tunes).is_whole
    except UsageError:  # shifts that a board of a suite lacks
        return False
