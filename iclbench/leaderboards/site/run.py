"""What runs/ID.html shows: one record, how to reproduce it, and its files."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from ...api.statistics import Statistics
from .. import formats
from ..board import Board
from ..row import Row
from .figure import View, figure
from .index import floor_text
from .plots import record_curves

_STATISTICS = ("median", "mean", "low", "high", "q05", "q95")
#: What the page calls a record's files; all others hold a metric's values.
_FILE_TITLES = {
    "weights": "weights (safetensors)",
    "answers": "answers (JSON lines)",
    "grades": "the grader's answers (JSON lines)",
}


def run(row: Row, board: Board) -> View:
    """A row's own page; its record and files are at records/TASK/ in the site."""
    record, ranking = row.record, row.record.ranking
    metrics = [_metric(name, statistics) for name, statistics in record.metrics.items()]
    metrics += [_metric(f"{record.main.floor.name} {n}", s) for n, s in record.floor.items()]
    seeds = [
        {
            "seed": seed.seed,
            "diverged": seed.diverged_at,
            "value": formats.number(score, ranking.scale),
        }
        for seed, score in zip(record.seeds, row.seed_scores, strict=True)
        if seed.seed is not None
    ]
    spec = record.spec.model_dump(mode="json")
    return {
        "row": row,
        "record": record,
        "score": formats.score(row, ranking),
        "origin": formats.origin(row),
        "budget": formats.budget(row.steps, row.batch),
        "time": formats.seconds(row.seconds),
        "floor": floor_text(board),
        "metrics": metrics,
        "seeds": seeds,
        "spec": [(key, _text(value)) for key, value in spec.items() if value not in (None, {}, [])],
        "figures": [figure(plot) for plot in record_curves(record)],
        "files": _files(row),
        "path": _path(row).as_posix(),
        "analyses": json.dumps(record.analyses, indent=1) if record.analyses else "",
    }


def _path(row: Row) -> PurePosixPath:
    return PurePosixPath("records") / row.file


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _metric(name: str, statistics: Statistics) -> View:
    median = statistics.median
    scale = "log" if median is not None and 0 < abs(median) < 1e-2 else "linear"
    cells = {s: formats.number(getattr(statistics, s), scale) for s in _STATISTICS}
    return {"name": name, **cells}


def _files(row: Row) -> list[tuple[str, str]]:
    """The record and every file that it names: what each is, and its path in the site."""
    path = _path(row)
    files = [("record (JSON)", path.as_posix())]
    files += [
        (_FILE_TITLES.get(kind, f"{kind} of every prompt"), f"records/{reference.name}")
        for kind, reference in row.record.named_files()
    ]
    return files
