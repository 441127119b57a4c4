"""A study's own table as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from safetensors import safe_open
from tabulate import tabulate

from ..api.record import Record
from ..api.statistics import Statistics
from ..runs.store import RecordStore
from ..sweeps.table import StudyTable
from .escaping import markdown
from .labels import labels_of
from .row import floor_label

#: Half a width below this is written with a power of ten.
SMALLEST_DECIMAL = 1e-4


def render_study(table: StudyTable, records: Sequence[Record], store: RecordStore) -> str:
    """The study's table as text: one row per record, below the floor of the first.

    Means are shown with half the width of their 95% interval, or with both bounds where it is
    unreliable. Raises RecordError if a record's weights, whose sizes are counted, are missing or
    were changed.
    """
    if not records:
        return ""
    known = dict.fromkeys(n for r in records for n in [*r.floor, *r.metrics])
    names = list(dict.fromkeys(n for p in table.metrics for n in known if fnmatchcase(n, p)))
    rows = [
        {
            "model": markdown(label),
            **_study_cells(table, names, record.metrics),
            **_parameter_counts(table, record, store),
        }
        for label, record in zip(labels_of(records), records, strict=True)
    ]
    first = records[0]
    if any(name in first.floor for name in names):
        cells = _study_cells(table, names, first.floor)
        rows.insert(0, {"model": floor_label(first), **cells, **dict.fromkeys(table.counts, "")})
    columns = ("left", *["right"] * (len(rows[0]) - 1))
    return tabulate(
        rows, headers="keys", tablefmt="github", disable_numparse=True, colalign=columns
    )


def unmatched(table: StudyTable, records: Iterable[Record]) -> list[str]:
    """The patterns of the table that no metric of the records matches."""
    known = {name for record in records for name in [*record.floor, *record.metrics]}
    return [p for p in table.metrics if not any(fnmatchcase(name, p) for name in known)]


def _study_cells(
    table: StudyTable, names: Iterable[str], metrics: dict[str, Statistics]
) -> dict[str, str]:
    return {name: _study_cell(table, metrics.get(name)) for name in names}


def _study_cell(table: StudyTable, statistics: Statistics | None) -> str:
    value = None if statistics is None else getattr(statistics, table.statistic)
    if statistics is None or value is None:
        return ""
    if table.statistic == "median" or statistics.low is None or statistics.high is None:
        return f"{value:.4g}"
    if not statistics.reliable:
        return f"{value:.4g} [{statistics.low:.3g}, {statistics.high:.3g}]"
    half = (statistics.high - statistics.low) / 2
    if 0 < half < SMALLEST_DECIMAL:
        return f"{value:.2e} ± {half:.1e}"
    if half == 0:
        return f"{value:.4g} ± 0"
    # Two figures of the half width, and the mean to the same place.
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{value:.{places}f} ± {half:.{places}f}"


def _parameter_counts(table: StudyTable, record: Record, store: RecordStore) -> dict[str, str]:
    """The sizes of the parameters in the record's weights; empty cells for a record without."""
    if not table.counts or record.weights_file is None:
        return dict.fromkeys(table.counts, "")
    store.objects.read(record.weights_file)  # refuses a changed file
    sizes: dict[str, int] = {}
    with safe_open(store.objects.path(record.weights_file), framework="np") as file:
        for key in file.keys():  # noqa: SIM118
            sizes[key.partition("/")[2]] = math.prod(file.get_slice(key).get_shape())
    return {
        column: f"{sum(n for name, n in sizes.items() if _matches(name, patterns)):,}"
        for column, patterns in table.counts.items()
    }


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
