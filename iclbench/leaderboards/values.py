"""Values: a number of a study's record, named by the record's fields and its place in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import UsageError
from ..api.names import is_finite_number
from ..api.record import MAIN, Record
from ..api.results import Evaluation
from ..api.statistics import Statistics
from ..runs.store import RecordStore, read_values
from ..sweeps.fields import field_of, require_field


class Value(Config):
    """A number of one record: a statistic of a metric, a point of a curve, or of an analysis."""

    where: dict[str, Any] = Field(
        description="fields of the spec, such as model_args.layers, that only this record has"
    )
    lacks: tuple[str, ...] = Field((), description="fields of the spec that it leaves at null")
    metric: str | None = None
    shift: str | None = Field(None, description="takes the metric under this shift")
    statistic: Literal["mean", "median", "q95", "q99"] = "median"
    at: float | None = Field(
        None, description="the value of a curve's axis; takes its median, or its mean"
    )
    analysis: str | None = Field(
        None, description="path in the analysis of each seed, such as METRIC.blocks.0.deviation"
    )

    @model_validator(mode="after")
    def _names_one_number(self) -> Value:
        if (self.metric is None) == (self.analysis is None):
            raise ValueError("a value is either of a metric or of an analysis")
        if self.analysis is not None and self.shift is not None:
            raise ValueError("an analysis is of the model as a whole and has no shift")
        if self.at is not None and self.statistic not in {"mean", "median"}:
            raise ValueError("a point of a curve has a mean and a median")
        for name in (*self.where, *self.lacks):
            require_field(name)
        return self


def record_of(value: Value, records: Sequence[Record], file: str) -> Record | None:
    """The one record with the value's fields, or None.

    Raises UsageError, with the name of the value's file, for several records, and for a field to
    lack that no record has, which may be misspelt.
    """
    for name in value.lacks:
        if records and all(field_of(r, name) is None for r in records):
            raise UsageError(f"{file}: no record has the field {name}, which one should lack")
    members = [
        r
        for r in records
        if all(field_of(r, k) == v for k, v in value.where.items())
        and all(field_of(r, k) is None for k in value.lacks)
    ]
    if len(members) > 1:
        lacking = f" and lack {', '.join(value.lacks)}" if value.lacks else ""
        raise UsageError(f"{file}: {len(members)} records have {value.where}{lacking}")
    return members[0] if members else None


def numbers_of(
    value: Value, record: Record, file: str, store: RecordStore | None = None
) -> tuple[float, list[float]]:
    """The number over all seeds, and that of each.

    A lost error counts as infinite. For other metrics and for analyses the worst value is unknown,
    so a lost number is NaN, which is in no range.

    A point of a curve has its numbers by seed in the values of the prompts: without the store that
    holds them, there are none. Raises UsageError, with the name of the value's file, where the
    record has no such number, and RecordError for values that are missing or were changed.
    """
    if value.analysis is not None:
        by_seed = [_at_path(record, value.analysis, i, file) for i in range(len(record.seeds))]
        return float(np.median(by_seed)), by_seed
    metric = str(value.metric)
    evaluation = record.evaluations.get(value.shift or MAIN)
    if evaluation is None:
        raise UsageError(f"{file}: a record of {value.where} was not evaluated under {value.shift}")
    if value.at is not None:
        return _on_curve(value, record, evaluation, file, store)
    if metric not in evaluation.metrics:
        raise UsageError(f"{file}: a record of {value.where} has no metric {metric}")

    def read(statistics: Statistics) -> float:
        number = getattr(statistics, value.statistic)
        return number if number is not None else _lost(evaluation, metric)

    by_seed = [read(metrics[metric]) for metrics in evaluation.seeds]
    return read(evaluation.metrics[metric]), by_seed


def _on_curve(
    value: Value, record: Record, evaluation: Evaluation, file: str, store: RecordStore | None
) -> tuple[float, list[float]]:
    """A point of a curve, and that of each seed's curve where the store is known."""
    metric = str(value.metric)
    curve = evaluation.curves.get(metric)
    if curve is None or value.at not in curve.values:
        raise UsageError(f"{file}: a record of {value.where} has no {metric} at {value.at:g}")
    index, is_mean = curve.values.index(value.at), value.statistic == "mean"
    lost = _lost(evaluation, metric)
    known = (curve.mean if is_mean else curve.median)[index]
    pooled = lost if known is None else known
    if store is None:
        return pooled, []
    references = {metric: evaluation.values[metric]}
    values = read_values(store.path_of(record), references)[metric][:, :, index]
    finite = np.where(np.isfinite(values), values, lost)
    by_seed = (np.mean if is_mean else np.median)(finite, axis=1)
    return pooled, [float(number) for number in by_seed]


def _at_path(record: Record, path: str, seed: int, file: str) -> float:
    """A number of a seed's analysis; raises UsageError where there is none."""
    name, *parts = path.split(".")
    try:
        content = record.analyses[name][seed]
        for part in parts:
            content = content[int(part) if isinstance(content, list) else part]
        return math.nan if content is None else float(content)
    except (KeyError, IndexError, TypeError, ValueError):
        raise UsageError(f"{file}: {record.id} has no analysis {path}") from None


def _lost(evaluation: Evaluation, metric: str) -> float:
    """The number that stands for a value that is not finite."""
    is_error = evaluation.metrics[metric].digits is not None
    return math.inf if is_error else math.nan


def single_numbers(content: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """The finite numbers of a seed's analysis by their path, such as `blocks 0 deviation`.

    Lists of numbers, maps and descriptions of plots are left out.
    """
    if isinstance(content, dict):
        for key, value in content.items():
            if key not in {"maps", "plots"}:
                yield from single_numbers(value, f"{path} {key}".strip())
    elif isinstance(content, list):
        for index, value in enumerate(content):
            if isinstance(value, dict):
                yield from single_numbers(value, f"{path} {index}")
    elif is_finite_number(content):
        yield path, float(content)
