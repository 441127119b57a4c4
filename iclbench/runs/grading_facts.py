"""What a record says of its grading, against the endings that its model writes again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..api.errors import IclbenchError, RecordError
from ..api.grader import Grader
from ..api.record import GraderReport, Record
from ..plugins import host
from .comparison import Check, same
from .grading import Grading, RecordedGrader
from .objects import Objects
from .plan import Plan
from .recorded_endings import same_endings


def grader_of(path: Path, record: Record, plan: Plan) -> Grading | RecordedGrader | None:
    """The grader of the record; for a paid one, the answers that it gave.

    Raises RecordError for a record that lacks them.
    """
    if record.grader is None or plan.grader is None:
        return None
    if record.grader.answers is None:
        raise RecordError("it names no file with its grader's answers")
    answers = Objects.beside(path).read(record.grader.answers)
    grader = plan.grader()
    return RecordedGrader(grader, answers) if grader.paid else plan.prepare_grading()


def compare_grading(
    path: Path, record: Record, plan: Plan, grader: Grader | None
) -> Iterator[Check]:
    """Whether the endings in the record's file are those that the model writes.

    A free grader's scores are compared too, and all of its report. A paid one is not asked again:
    what it answered must be about these endings, and the report must fit its answers.
    """
    report, graded = record.grader, "graded endings, written again"
    if report is None or report.answers is None or plan.grader is None:
        return
    if isinstance(grader, RecordedGrader):
        yield Check(graded, grader.total, grader.same, grader.same == grader.total)
        # Its model, its cost and why grades are missing are what the service said.
        facts = {
            "prompt": plan.grader().report().prompt,
            "completions": grader.total,
            "failures": grader.failures,
        }
        yield from _compare_report(report, facts)
    elif isinstance(grader, Grading):
        recorded = Objects.beside(path).read(report.answers)
        total, equal = same_endings(recorded, grader.answers())
        yield Check(graded, total, equal, equal == total)
        yield from _compare_report(report, grader.report().model_dump(exclude={"answers"}))


def _compare_report(report: GraderReport, facts: dict[str, Any]) -> Iterator[Check]:
    recorded = report.model_dump()
    for name, computed in facts.items():
        yield same(f"grading {name}", recorded[name], computed)


def has_paid_grades(record: Record) -> bool:
    """Whether a record has grades that can't be computed again, as far as is known here."""
    if record.grader is None:
        return False
    try:
        grader: type[Grader] = host().load("grader", record.grader.name, Grader)
    except IclbenchError:  # its plugin is not here
        return True
    return grader.paid
