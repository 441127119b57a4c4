"""A study's own table: several metrics of each of its records, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field
from safetensors import safe_open
from tabulate import tabulate

from ..api.config import Config
from ..api.record import Record
from ..api.statistics import Statistics
from ..runs.store import RecordStore, read_referenced
from .tables import labels_of


class StudyTable(Config):
    """What the table shows of each record, and of the floor that they share."""

    metrics: tuple[str, ...] = Field(
        min_length=1, description="patterns of metrics, in the order of their columns"
    )
    statistic: str = Field("mean", pattern="^(mean|median)$")
    counts: dict[str, tuple[str, ...]] = Field(
        {}, description="further columns: how many parameters have a name of these patterns"
    )


def render_study(table: StudyTable, records: Sequence[Record], store: RecordStore) -> str:
    """The table of trained and constructed models as text; means with half their 95% interval."""
    if not records:
        return ""
    found = dict.fromkeys(n for r in records for n in [*r.floor, *r.metrics])
    names = [n for p in table.metrics for n in found if fnmatchcase(n, p)]
    names = list(dict.fromkeys(names))
    first = records[0]
    rows = [
        {"model": label, **_cells(table, names, record.metrics), **_counts(table, record, store)}
        for label, record in zip(labels_of(list(records)), records, strict=True)
    ]
    if any(name in first.floor for name in names):
        rows.insert(0, {"model": first.floor_name, **_cells(table, names, first.floor),
                        **dict.fromkeys(table.counts, "")})  # fmt: skip
    columns = ("left", *["right"] * (len(rows[0]) - 1))
    return tabulate(
        rows, headers="keys", tablefmt="github", disable_numparse=True, colalign=columns
    )


def _cells(
    table: StudyTable, names: Sequence[str], metrics: dict[str, Statistics]
) -> dict[str, Any]:
    return {name: _cell(table, metrics.get(name)) for name in names}


def _cell(table: StudyTable, found: Statistics | None) -> str:
    value = None if found is None else getattr(found, table.statistic)
    if found is None or value is None:
        return ""
    if table.statistic == "median" or found.low is None or found.high is None:
        return f"{value:.4g}"
    half = (found.high - found.low) / 2
    # Two figures of the half, and the mean to the same place.
    places = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 3
    return f"{value:.{places}f} ± {half:.{places}f}"


def _counts(table: StudyTable, record: Record, store: RecordStore) -> dict[str, str]:
    """The numbers of parameters, from the shapes in the record's weights; empty without."""
    if not table.counts or record.weights is None:
        return dict.fromkeys(table.counts, "")
    path = store.path(record.spec)
    read_referenced(path, record.weights)  # refuses a changed file
    sizes: dict[str, int] = {}
    with safe_open(path.parent / record.weights.file, framework="np") as file:
        for key in file.keys():  # noqa: SIM118
            sizes[key.partition("/")[2]] = math.prod(file.get_slice(key).get_shape())
    return {
        column: f"{sum(n for name, n in sizes.items() if _matches(name, patterns)):,}"
        for column, patterns in table.counts.items()
    }


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
