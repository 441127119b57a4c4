"""What runs/ID.html shows: one record, how to reproduce it, and its files."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from ...api.record import Record
from ...api.statistics import Statistics
from ...runs.facts import claims
from ...runs.heldout import held_out_path
from .. import formats
from ..board import Board
from ..row import Row, floor_label, mean_bounds
from .figure import View, figure
from .home import floor_text
from .plots import record_curves

_QUANTILES = ("q01", "q05", "median", "q95", "q99", "max")
#: What the page calls a record's files; all others hold a metric's values.
_FILE_TITLES = {
    "weights": "weights (safetensors)",
    "answers": "answers (JSON lines)",
    "grades": "the grader's answers (JSON lines)",
}


def run(row: Row, board: Board) -> View:
    """A row's own page; its record and files are at records/TASK/ in the site."""
    record, ranking = row.record, row.record.ranking
    metrics = [_metric(name, statistics, row.seeds) for name, statistics in record.metrics.items()]
    metrics += [_metric(f"{floor_label(record)}: {n}", s) for n, s in record.floor.items()]
    seeds = [
        {
            "seed": seed.seed,
            "diverged": seed.diverged_at,
            "value": formats.score(score, ranking),
        }
        for seed, score in zip(record.seeds, row.seed_scores, strict=True)
        if seed.seed is not None
    ]
    spec = record.spec.model_dump(mode="json")
    return {
        "row": row,
        "record": record,
        "score": formats.score(row.score, ranking),
        "score_name": formats.score_name(ranking),
        "interval": formats.score_interval(row),
        "held_out": _held_out(row),
        "worst": formats.number(row.worst, ranking.scale),
        "notes": formats.notes(row),
        "proof": _proof(record),
        "claims": claims(record, row.stale),
        "origin": formats.origin(row),
        "budget": formats.budget(row.steps, row.batch),
        "time": formats.seconds(row.seconds),
        "floor": floor_text(board),
        "floor_label": board.floor.label if board.floor else "floor",
        "metrics": metrics,
        "seeds": seeds,
        "spec": [(key, _text(value)) for key, value in spec.items() if value not in (None, {}, [])],
        "figures": [figure(plot) for plot in record_curves(record)],
        "files": _files(row),
        "path": _path(row).as_posix(),
        "tuning": json.dumps(record.tuning.document, indent=1) if record.tuning else "",
        "analyses": json.dumps(record.analyses, indent=1) if record.analyses else "",
    }


def _held_out(row: Row) -> str:
    """The held-out score, its difference from the row's, and when its prompts were drawn."""
    if row.held_out is None:
        return "none" if row.is_trained else ""
    part = row.held_out.difference
    write = formats.digits if row.has_digits else formats.linear
    bounds = f"{write(part.mean)} [{write(part.low)}, {write(part.high)}]"
    significant = "significant" if row.held_out.differs else "not significant"
    score = formats.score(row.held_out_score, row.record.ranking)
    return f"{score}, difference {bounds}, {significant}; {row.held_out.created[:10]}"


def _path(row: Row) -> PurePosixPath:
    return PurePosixPath("records") / row.file


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _metric(name: str, statistics: Statistics, seeds: int = 0) -> dict[str, str]:
    """The columns of a line of metrics: its name first."""
    median, digits = statistics.median, statistics.digits
    is_small = median is not None and 0 < abs(median) < 1e-2
    write = formats.number if is_small else formats.linear
    return {
        "metric": name,
        "mean digits": "" if digits is None else formats.digits(digits.mean),
        "mean": write(statistics.mean),
        "95% interval of the mean": formats.interval(mean_bounds(statistics), write, seeds),
        **{name: write(getattr(statistics, name)) for name in _QUANTILES},
    }


def _proof(record: Record) -> str:
    """What has been checked, where and when."""
    proof = record.proof
    if proof is None:
        return "nobody has checked this record yet"
    bits = "" if proof.same_bits is None else f", {'same' if proof.same_bits else 'other'} bits"
    return f"{proof.kind}{bits}, {proof.created[:10]}, on {proof.environment.device}"


def _files(row: Row) -> list[tuple[str, str]]:
    """The record and every file that it names: what each is, and its path in the site."""
    path = _path(row)
    files = [("record (JSON)", path.as_posix())]
    if row.held_out is not None:
        files.append(("held-out evaluation (JSON)", held_out_path(path).as_posix()))
    files += [
        (_FILE_TITLES.get(kind, f"{kind} of every prompt"), f"records/{reference.name}")
        for kind, reference in row.record.named_files()
    ]
    return files
