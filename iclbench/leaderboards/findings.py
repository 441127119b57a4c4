"""Findings: what papers report, by which criterion a study shows it here, and the verdict.

`leaderboards/findings.toml` holds claims and criteria, and says which were written after the runs.
Some are own questions, which their source does not answer.
The verdict follows from the studies' records alone.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import UsageError
from ..api.names import is_plain_name
from ..api.record import MAIN, Record
from ..api.statistics import Statistics
from ..runs.store import RecordStore
from .documents import read_document
from .reading import Refused, sound_records

FILE = "findings.toml"
#: The folder of the studies' records, beside the file.
STUDIES = "studies"

Verdict = Literal["reproduced", "in kind", "not shown", "contradicted", "not run"]
#: The lowest and the highest value, both included.
Range = tuple[
    Annotated[float, Field(allow_inf_nan=True)], Annotated[float, Field(allow_inf_nan=True)]
]


class Value(Config):
    """A number of one record: a statistic of a metric, a point of a curve, or of an analysis."""

    where: dict[str, Any] = Field(
        description="fields of the spec, such as model_args.layers, that only this record has"
    )
    lacks: tuple[str, ...] = Field((), description="fields of the spec that it leaves at null")
    metric: str | None = None
    shift: str | None = Field(None, description="takes the metric under this shift")
    statistic: Literal["mean", "median", "q95", "q99"] = "median"
    at: float | None = Field(None, description="the value of a curve's axis; takes its median")
    analysis: str | None = Field(
        None, description="path in the analysis of each seed, such as METRIC.blocks.0.deviation"
    )

    @model_validator(mode="after")
    def _names_one_number(self) -> Value:
        if (self.metric is None) == (self.analysis is None):
            raise ValueError("a value is either of a metric or of an analysis")
        if self.analysis is not None and self.shift is not None:
            raise ValueError("an analysis is of the model as a whole and has no shift")
        return self


class Finding(Config):
    """A claim of a paper, and the ranges of one number in which the claim holds or fails.

    The number is `first`, or `first` divided by `second` or minus `second`. An outcome counts if
    the number is in its range over all seeds, and for most pairs of equal seeds where the records
    have it by seed. Otherwise the finding is not shown.
    """

    records: str = Field(description="folder of the study's records")
    source: str = Field(min_length=1, max_length=300, description="paper, and figure or section")
    claim: str = Field(min_length=1, max_length=300)
    criterion: str = Field(min_length=1, max_length=500, description="the ranges in words")
    written: datetime.date = Field(description="when the criterion was written")
    after_run: bool = Field(False, description="whether the records existed by then")
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


@dataclass(frozen=True)
class Outcome:
    """A finding with its verdict, the number over all seeds, and that of each seed if known.

    `records` are those that the number is of, none for a finding that was not run.
    """

    finding: Finding
    verdict: Verdict
    number: float | None = None
    by_seed: tuple[float, ...] = ()
    records: tuple[Record, ...] = ()


def read_findings(folder: Path) -> list[Finding]:
    """The findings in `folder`/findings.toml; none if there is no such file.

    Raises UsageError with the reason for a file that is not valid.
    """
    return read_document(folder / FILE, _File).finding


def outcomes(folder: Path, refused: Refused) -> list[Outcome]:
    """The verdict of every finding, from the records in `folder`/studies.

    `refused` gets a line for each damaged record. Raises UsageError for a value that several
    records have, or that a record lacks.
    """
    known: dict[str, list[Record]] = {}
    results = []
    for finding in read_findings(folder):
        if finding.records not in known:
            paths = RecordStore(folder / STUDIES / finding.records).paths()
            known[finding.records] = [record for _, record in sound_records(paths, refused)]
        results.append(judge(finding, known[finding.records]))
    return results


def judge(finding: Finding, records: Sequence[Record]) -> Outcome:
    """The verdict of a finding, from the records of its study."""
    values = [value for value in (finding.first, finding.second) if value is not None]
    members = [_record_of(value, records) for value in values]
    present = [record for record in members if record is not None]
    if len(present) < len(values):
        return Outcome(finding, "not run")
    numbers = [_numbers(value, record) for value, record in zip(values, present, strict=True)]
    number = _compared(finding, [pooled for pooled, _ in numbers])
    by_seed: tuple[float, ...] = ()
    if len({tuple(seed.seed for seed in record.seeds) for record in present}) == 1:
        # Without a number by seed on either side, there are no pairs.
        pairs = zip(*(values for _, values in numbers), strict=False)
        by_seed = tuple(_compared(finding, pair) for pair in pairs)
    verdict = _verdict(finding, number, by_seed)
    return Outcome(finding, verdict, number, by_seed, tuple(present))


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
    return first / second if second else math.copysign(math.inf, first) if first else math.nan


def _record_of(value: Value, records: Sequence[Record]) -> Record | None:
    """The one record with these fields, or None; raises UsageError for several.

    Also for a field to lack that no record has, which may be misspelt.
    """
    for name in value.lacks:
        if records and all(_field(r, name) is None for r in records):
            raise UsageError(f"{FILE}: no record has the field {name}, which one should lack")
    members = [
        r
        for r in records
        if all(_field(r, k) == v for k, v in value.where.items())
        and all(_field(r, k) is None for k in value.lacks)
    ]
    if len(members) > 1:
        lacking = f" and lack {', '.join(value.lacks)}" if value.lacks else ""
        raise UsageError(f"{FILE}: {len(members)} records have {value.where}{lacking}")
    return members[0] if members else None


def _field(record: Record, name: str) -> Any:
    """The value of a spec's field, by its dotted name; None if this record has none."""
    group, _, key = name.partition(".")
    content = getattr(record.spec, group, None)
    return content.get(key) if key and isinstance(content, dict) else content


def _numbers(value: Value, record: Record) -> tuple[float, list[float]]:
    """The number over all seeds, and that of each; what is not finite counts as infinite."""
    if value.analysis is not None:
        by_seed = [_at_path(record, value.analysis, i) for i in range(len(record.seeds))]
        return float(np.median(by_seed)), by_seed
    metric = str(value.metric)
    evaluation = record.evaluations.get(value.shift or MAIN)
    if evaluation is None:
        raise UsageError(f"{FILE}: a record of {value.where} was not evaluated under {value.shift}")
    if value.at is not None:
        curve = evaluation.curves.get(metric)
        if curve is None or value.at not in curve.values:
            raise UsageError(f"{FILE}: a record of {value.where} has no {metric} at {value.at:g}")
        # Records keep no curves of single seeds.
        return _finite_or_infinite(curve.median[curve.values.index(value.at)]), []
    if metric not in evaluation.metrics:
        raise UsageError(f"{FILE}: a record of {value.where} has no metric {metric}")

    def read(statistics: Statistics) -> float:
        return _finite_or_infinite(getattr(statistics, value.statistic))

    by_seed = [read(metrics[metric]) for metrics in evaluation.seeds]
    return read(evaluation.metrics[metric]), by_seed


def _at_path(record: Record, path: str, seed: int) -> float:
    """A number of a seed's analysis; raises UsageError where there is none."""
    name, *parts = path.split(".")
    try:
        content = record.analyses[name][seed]
        for part in parts:
            content = content[int(part) if isinstance(content, list) else part]
        return _finite_or_infinite(content)
    except (KeyError, IndexError, TypeError, ValueError):
        raise UsageError(f"{FILE}: {record.id} has no analysis {path}") from None


def _finite_or_infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
