"""The table that a sweep file asks for: a row per record."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from safetensors import safe_open

from ..api.record import Record
from ..api.statistics import Statistics
from ..leaderboards.board_names import board_names
from ..leaderboards.floor import floor_label
from ..leaderboards.grouping import grouped
from ..leaderboards.labels import labels_of
from ..runs.store import RecordStore
from ..sweeps.table import StudyTable
from .table import Cell, Column, Table

#: Half a width below this is written with a power of ten.
SMALLEST_DECIMAL = 1e-4

#: An interval whose ends lie within this share of its half width of the mean ± half is written so.
SYMMETRIC = 0.1

WIDTHS = (
    "± is half the width of the 95% interval; an interval that is unreliable, or much wider on one "
    "side of the mean, has its bounds in brackets."
)


def study_table(described: StudyTable, records: Sequence[Record], store: RecordStore) -> Table:
    """The table: one row per record, below the floor of its board.

    Boards are named where there are several. Means are shown with half the width of their 95%
    interval, or with both bounds where it is unreliable; CSV and JSON have the bounds in columns of
    their own. Raises RecordError if a record's weights, whose sizes are counted, are missing or
    were changed.
    """
    names = [
        name
        for pattern in described.metrics
        for name in names_of(records)
        if fnmatchcase(name, pattern)
    ]
    names = list(dict.fromkeys(names))
    boards = grouped(zip(board_names(records), records, strict=True), lambda named: named[0])
    rows: list[dict[str, Any]] = []
    for board, named in boards.items():
        members = [record for _, record in named]
        known = {"board": board} if len(boards) > 1 else {}
        if any(name in members[0].floor for name in names):
            floor = _cells(described, names, members[0].floor)
            rows.append({**known, "model": floor_label(members[0]), **floor})
        rows += [
            {
                **known,
                "model": label,
                **_cells(described, names, record.metrics),
                **_parameter_counts(described, record, store),
            }
            for label, record in zip(labels_of(members), members, strict=True)
        ]
    bounds = [f"{name} {end}" for name in names for end in ("low", "high")]
    columns = (
        *([Column("board", fit="wrap")] if len(boards) > 1 else []),
        Column("model", fit="shorten"),
        *(Column(name, right=True) for name in [*names, *described.counts]),
        *(Column(name, right=True, extra=True) for name in bounds),
    )
    texts = [row[name].text for row in rows for name in names]
    shows_widths = any("±" in text or "[" in text for text in texts)
    return Table(columns, rows, notes=[WIDTHS] if shows_widths else [])


def names_of(records: Iterable[Record]) -> list[str]:
    """The metrics that records or their floors have."""
    return list(dict.fromkeys(name for r in records for name in [*r.floor, *r.metrics]))


def _cells(
    described: StudyTable, names: Iterable[str], metrics: dict[str, Statistics]
) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name in names:
        statistics = metrics.get(name)
        value = None if statistics is None else getattr(statistics, described.statistic)
        cells[name] = Cell(_study_cell(described, statistics), value)
        if statistics is not None and described.statistic == "mean":
            cells |= {f"{name} low": statistics.low, f"{name} high": statistics.high}
    return cells


def _study_cell(table: StudyTable, statistics: Statistics | None) -> str:
    value = None if statistics is None else getattr(statistics, table.statistic)
    if statistics is None or value is None:
        return ""
    if table.statistic == "median" or statistics.low is None or statistics.high is None:
        return f"{value:.4g}"
    half = (statistics.high - statistics.low) / 2
    off = abs(value - (statistics.high + statistics.low) / 2)
    if not statistics.reliable or off > SYMMETRIC * half:
        return f"{value:.4g} [{statistics.low:.3g}, {statistics.high:.3g}]"
    if 0 < half < SMALLEST_DECIMAL:
        return f"{value:.2e} ± {half:.1e}"
    if half == 0:
        return f"{value:.4g} ± 0"
    # Two figures of the half width, and the mean to the same place.
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{value:.{places}f} ± {half:.{places}f}"


def _parameter_counts(table: StudyTable, record: Record, store: RecordStore) -> dict[str, Cell]:
    """The sizes of the parameters in the record's weights; nothing for a record without."""
    if not table.counts or record.weights_file is None:
        return {}
    sizes: dict[str, int] = {}
    with safe_open(store.objects.sound_path(record.weights_file), framework="np") as file:
        for key in file.keys():  # noqa: SIM118
            # A plain state dict has no seeds before its names.
            sizes[re.sub(r"^[0-9]+/", "", key)] = math.prod(file.get_slice(key).get_shape())
    counts = {
        column: sum(n for name, n in sizes.items() if _matches(name, patterns))
        for column, patterns in table.counts.items()
    }
    return {column: Cell(f"{count:,}", count) for column, count in counts.items()}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
