"""Findings: what papers report, by which criterion a study shows it here, and the verdict.

`leaderboards/findings.toml` holds claims and criteria, and says which were written after the runs,
or changed when their verdict was known. Some are own questions, which their source does not answer.
The verdict follows from the studies' records alone.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import IclbenchError
from ..api.names import is_plain_name
from ..api.record import Record
from ..console import counted
from ..files import STUDIES
from ..runs.store import RecordStore
from .documents import read_document
from .reading import Refused, sound_records_of
from .representative import is_one_training
from .values import Value, numbers_of, record_of

FILE = "findings.toml"

Verdict = Literal["reproduced", "in kind", "not shown", "contradicted", "not run"]
#: What one trained seed shows where more would show this: another one may differ.
LOWERED: dict[Verdict, Verdict] = {"reproduced": "in kind", "contradicted": "not shown"}
#: The lowest and the highest value, both included.
Range = tuple[
    Annotated[float, Field(allow_inf_nan=True)], Annotated[float, Field(allow_inf_nan=True)]
]


class Finding(Config):
    """A claim of a paper, and the ranges of one number in which the claim holds or fails.

    The number is `first`, or `first` divided by `second` or minus `second`. A verdict counts if
    the number is in its range over all seeds, and for most pairs of equal seeds where the records
    have it by seed. Otherwise the finding is not shown. One trained seed shows it in kind at most,
    and contradicts nothing. With a flaw, the finding is not shown, whatever the number.
    """

    records: str = Field(description="folder of the study's records")
    source: str = Field(min_length=1, max_length=300, description="paper, and figure or section")
    claim: str = Field(min_length=1, max_length=300)
    criterion: str = Field(min_length=1, max_length=500, description="the ranges in words")
    remark: str = Field("", max_length=500, description="what limits the verdict, for readers")
    written: datetime.date = Field(description="when the criterion was written")
    after_run: bool = Field(False, description="whether the records existed by then")
    changed: str = Field(
        "",
        max_length=300,
        description="what the criterion was while its verdict was known, and which verdict it gave",
    )
    flaw: str = Field(
        "",
        max_length=400,
        description="why the run can't decide the claim, seen after it: it is then not shown",
    )
    shorter_run: bool = Field(
        False, description="whether another finding tests the claim with more training"
    )
    own_question: bool = Field(
        False, description="whether the source does not make the claim: it is asked here"
    )
    compare: Literal["value", "ratio", "difference"]
    first: Value
    second: Value | None = None
    reproduced: Range
    in_kind: Range | None = None
    contradicted: Range

    @model_validator(mode="after")
    def _check(self) -> Finding:
        if (self.second is None) != (self.compare == "value"):
            raise ValueError("a ratio and a difference need `second`, a value has none")
        if not is_plain_name(self.records):
            raise ValueError(f"{self.records[:100]!r} is not a plain name of a folder")
        kind = self.in_kind or self.reproduced
        for low, high in (self.reproduced, kind, self.contradicted):
            if not low <= high:
                raise ValueError(f"the range {low} … {high} is empty")
        if not (kind[0] <= self.reproduced[0] and self.reproduced[1] <= kind[1]):
            raise ValueError("what is reproduced must be so in kind")
        if max(kind[0], self.contradicted[0]) < min(kind[1], self.contradicted[1]):
            raise ValueError("a number can't show a finding and contradict it")
        return self


class _File(Config):
    finding: list[Finding] = []

    @model_validator(mode="after")
    def _claims_have_one_verdict(self) -> _File:
        main = Counter(one.claim for one in self.finding if not one.shorter_run)
        for claim in dict.fromkeys(one.claim for one in self.finding):
            if main[claim] != 1:
                raise ValueError(
                    f"{claim!r} has {counted(main[claim], 'finding')} without `shorter_run`; "
                    "that with the most training decides, and the others need it"
                )
        return self


@dataclass(frozen=True)
class Judgement:
    """A finding with its verdict, the number over all seeds, and that of each seed if known.

    `records` are those that the number is of, none for a finding that was not run. `of_means` is
    the judgement if means replace medians, which most papers report; None where there are none.
    `is_lowered` says that the number would give a stronger verdict if there were several seeds.
    """

    finding: Finding
    verdict: Verdict
    number: float | None = None
    by_seed: tuple[float, ...] = ()
    records: tuple[Record, ...] = ()
    of_means: Judgement | None = None
    is_lowered: bool = False


def read_findings(folder: Path) -> list[Finding]:
    """The findings in `folder`/findings.toml; none if there is no such file.

    Raises UsageError with the reason for a file that is not valid.
    """
    return read_document(folder / FILE, _File).finding


def judgements(folder: Path, refused: Refused) -> list[Judgement]:
    """The verdict of every finding, from the records in `folder`/studies.

    `refused` gets a line for each damaged record, and for each finding with a value that several
    records have, or that a record lacks: no record can keep the others from being judged.
    """
    known: dict[str, list[Record]] = {}
    results = []
    for finding in read_findings(folder):
        store = RecordStore(folder / STUDIES / finding.records)
        if finding.records not in known:
            known[finding.records] = sound_records_of(store, refused)
        try:
            results.append(judge(finding, known[finding.records], store))
        except IclbenchError as error:
            refused(f"{FILE}: {finding.claim} {error}")
            results.append(Judgement(finding, "not run"))
    return results


def judge(
    finding: Finding, records: Sequence[Record], store: RecordStore | None = None
) -> Judgement:
    """The verdict of a finding, from the records of its study in the store."""
    judgement = _judged(finding, records, store)
    of_means = _by_means(finding)
    if judgement.verdict == "not run" or of_means is None:
        return judgement
    return replace(judgement, of_means=_judged(of_means, records, store))


def _by_means(finding: Finding) -> Finding | None:
    """The finding with the means of metrics instead of their medians; None if it has no median."""
    values = {"first": finding.first, "second": finding.second}
    changed = {
        name: value.model_copy(update={"statistic": "mean"})
        for name, value in values.items()
        if value is not None and value.analysis is None and value.statistic == "median"
    }
    return finding.model_copy(update=changed) if changed else None


def _judged(finding: Finding, records: Sequence[Record], store: RecordStore | None) -> Judgement:
    values = [value for value in (finding.first, finding.second) if value is not None]
    members = [record_of(value, records, FILE) for value in values]
    present = [record for record in members if record is not None]
    if len(present) < len(values):
        return Judgement(finding, "not run")
    numbers = [
        numbers_of(value, record, FILE, store)
        for value, record in zip(values, present, strict=True)
    ]
    number = _compared(finding, [pooled for pooled, _ in numbers])
    by_seed = tuple(
        _compared(finding, pair) for pair in _pairs(present, [values for _, values in numbers])
    )
    verdict = of_number = _verdict(finding, number, by_seed)
    if any(map(is_one_training, present)):
        verdict = LOWERED.get(verdict, verdict)
    is_lowered = verdict != of_number
    if finding.flaw:
        verdict, is_lowered = "not shown", False
    return Judgement(finding, verdict, number, by_seed, tuple(present), is_lowered=is_lowered)


def _pairs(
    records: Sequence[Record], numbers: Sequence[Sequence[float]]
) -> Iterator[tuple[float, ...]]:
    """The numbers of each seed that the records share; one without seeds is beside each of them.

    Nothing where they share none, or where one side has no number by seed.
    """
    by_seed = [
        dict(zip((seed.seed for seed in record.seeds), values, strict=False))
        for record, values in zip(records, numbers, strict=True)
    ]
    trained = [those for those in by_seed if set(those) != {None}] or by_seed
    for seed in trained[0]:
        if all(seed in those for those in trained):
            yield tuple(those[seed] if seed in those else those[None] for those in by_seed)


def _verdict(finding: Finding, number: float, by_seed: Sequence[float]) -> Verdict:
    def holds(limits: Range | None) -> bool:
        if limits is None or not limits[0] <= number <= limits[1]:
            return False
        inside = sum(limits[0] <= value <= limits[1] for value in by_seed)
        return not by_seed or inside > len(by_seed) / 2

    if holds(finding.reproduced):
        return "reproduced"
    if holds(finding.in_kind):
        return "in kind"
    return "contradicted" if holds(finding.contradicted) else "not shown"


def _compared(finding: Finding, values: Sequence[float]) -> float:
    if finding.compare == "value":
        return values[0]
    first, second = values
    if finding.compare == "difference":
        return first - second
    if not math.isfinite(second):
        return math.nan  # a ratio to what is lost would be 0, whatever the first is
    return first / second if second else math.copysign(math.inf, first) if first else math.nan
