"""What the templates show: plain dictionaries of text and numbers, from boards and records."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ...api.record import Record
from ...api.spec import digest_of
from ...api.statistics import Statistics
from .. import formats
from ..comparison import scale
from ..overview import Overview
from ..precision import digits, floor_digits, has_digits, is_at_floor, missing_digits
from ..tables import Board, Standing
from . import svg
from .plots import Plot, board_curves, extent, profiles, record_curves
from .series import series

View = dict[str, Any]

#: Rows of a table that are shown before more are asked for, which keeps long ones quick.
MOST_ROWS = 100


def figure(found: Plot) -> View:
    """A figure with its drawing, its legend, and the data for Plotly."""
    legend = [
        {"name": line["name"], "color": "dotted" if line.get("dotted") else f"c{line['color']}"}
        for line in found["lines"]
    ]
    data = json.dumps(_finite(found), separators=(",", ":")).replace("<", "\\u003c")
    return {"title": found["title"], "svg": svg.draw(found), "legend": legend, "data": data}


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not np.isfinite(content) else content


def evaluation_key(record: Record) -> str:
    """Records with one key were evaluated on the same draws, in any dtype."""
    evaluation, spec = record.evaluation, record.spec
    content = [spec.task, spec.task_version, evaluation.task_args, evaluation.digest]
    return digest_of(content)[:12]


def groups(boards: Iterable[Board]) -> dict[str, list[Board]]:
    """The boards of each evaluation: one a dtype."""
    found: dict[str, list[Board]] = {}
    for board in boards:
        found.setdefault(evaluation_key(board.records[0]), []).append(board)
    return found


def heat_map(found: Overview) -> View:
    """The overview of a dtype: models down, tasks across."""
    columns: list[View] = []
    for board in found.boards:
        record = board.records[0]
        task = record.spec.task
        tops = [_amount(s.record) for s in found.best.values() if s.record.spec.task == task]
        args = formats.arguments(record.evaluation.task_args)
        columns.append(
            {
                "task": task,
                "metric": "digits" if has_digits(record) else record.ranking.metric,
                "about": f"v{record.spec.task_version}, {args}, "
                f"{record.evaluation.prompts} prompts",
                "floor": _floor_text(record),
                "ends": _ends(tops, record),
            }
        )
    rows = [
        {"model": model, "cells": [_heat(found.best.get((c["task"], model)), c) for c in columns]}
        for model in found.models
    ]
    return {"dtype": found.dtype, "columns": columns, "rows": rows}


def _amount(record: Record) -> float | None:
    """What the colors stand for: digits, or the metric so that more is better."""
    if has_digits(record):
        return digits(record)
    value = getattr(record.metrics[record.ranking.metric], record.ranking.statistic)
    if value is None:
        return None
    return -float(value) if record.ranking.better == "lower" else float(value)


def _ends(amounts: Sequence[float | None], record: Record) -> tuple[float, float]:
    own, missing = digits(record), missing_digits(record)
    if own is not None and missing is not None:
        floor = floor_digits(record)
        known = floor is not None and np.isfinite(floor)
        top = (
            floor if floor is not None and known else -2 * np.log10(np.finfo(record.spec.dtype).eps)
        )
        return 0.0, max(float(top), 1e-9)
    return extent(amounts, log=False) or (0.0, 1.0)


def _heat(standing: Standing | None, column: View) -> View | None:
    if standing is None:
        return None
    record = standing.record
    low, high = column["ends"]
    amount = _amount(record)
    part = 0.0 if amount is None or high <= low else (min(amount, high) - low) / (high - low)
    percent = round(100 * min(max(part, 0.0), 1.0))
    return {
        "id": record.id,
        "text": _main(record),
        "mark": formats.MARKS[record.spec.origin],
        "origin": record.spec.origin,
        "label": standing.label,
        "percent": percent,
        "floor": is_at_floor(record),
    }


def _main(record: Record) -> str:
    """Digits, or the value of what the task ranks by."""
    if has_digits(record):
        return formats.digits_text(digits(record)) or "—"
    found = record.metrics[record.ranking.metric]
    return formats.number(getattr(found, record.ranking.statistic), record.ranking.scale)


def _floor_text(record: Record) -> str:
    found = record.floor.get(record.ranking.metric)
    if found is None:
        return ""
    if has_digits(record):
        return formats.digits_text(floor_digits(record))
    return formats.number(getattr(found, record.ranking.statistic), record.ranking.scale)


def section(key: str, boards: Sequence[Board]) -> View:
    """One evaluation of a task: a table over all its dtypes, and figures."""
    record = boards[0].records[0]
    standings = [(board, s) for board in boards for s in board.standings]
    first = record.spec.dtype
    ends = {board.records[0].spec.dtype: _interval_ends(board) for board in boards}
    figures = [figure(f) for board in boards for f in (profiles(board), *board_curves(board)) if f]
    rows = [
        _row(s, ends[s.record.spec.dtype], hidden=board is not boards[0] or i >= MOST_ROWS)
        for board in boards
        for i, s in enumerate(board.standings)
    ]
    # What a long table hides is text until it is asked for, which the browser needn't build.
    long = len(rows) > MOST_ROWS
    return {
        "key": key,
        "title": formats.arguments(record.evaluation.task_args) or "default arguments",
        "record": record,
        "rows": [row for row in rows if not (long and row["hidden"])],
        "rest": [row for row in rows if long and row["hidden"]],
        "count": len(rows),
        "most": MOST_ROWS,
        "fitting": len(boards[0].standings),
        "ends": [
            f"{dtype}: {formats.interval(*pair, record.ranking.scale)}"
            for dtype, pair in ends.items()
        ],
        "floors": [(b.records[0].spec.dtype, _floor_text(b.records[0])) for b in boards],
        "dtypes": [board.records[0].spec.dtype for board in boards],
        "default_dtype": first,
        "models": sorted({s.record.spec.model for _, s in standings}),
        "origins": sorted({s.record.spec.origin for _, s in standings}),
        "budgets": sorted({s.record.training.steps for _, s in standings if s.record.training}),
        "figures": figures,
        "has_digits": has_digits(record),
    }


def _interval_ends(board: Board) -> tuple[float, float]:
    """The range of a board's interval plots."""
    ranking = board.records[0].ranking
    bounds = [
        getattr(record.metrics[ranking.metric], name)
        for record in board.records
        for name in ("low", "high", ranking.statistic)
    ]
    ends = extent(bounds, ranking.scale == "log")
    if ends is None or ends[0] == ends[1]:
        return (1e-1, 1e1) if ranking.scale == "log" else (0.0, 1.0)
    return ends


def _row(standing: Standing, ends: tuple[float, float], hidden: bool) -> View:
    record = standing.record
    ranking, spec = record.ranking, record.spec
    found = record.metrics[ranking.metric]
    value = getattr(found, ranking.statistic)
    missing = missing_digits(record)
    return {
        "id": record.id,
        "rank": standing.rank,
        "label": standing.label,
        "model": spec.model,
        "dtype": spec.dtype,
        "hidden": hidden,
        "origin": spec.origin,
        "origin_text": formats.origin(record),
        "digits": formats.digits_text(digits(record)),
        "floor": is_at_floor(record),
        "missing": "" if missing is None else f"−{missing:.1f}",
        "median": formats.number(found.median, ranking.scale),
        "mean": formats.number(found.mean, ranking.scale),
        "interval": formats.interval(found.low, found.high, ranking.scale),
        "plot": svg.interval(found.low, found.high, value, ends, ranking.scale == "log"),
        "above": formats.difference_text(standing.above, ranking.scale),
        "seeds": len(spec.seeds),
        "parameters": record.parameters,
        "steps": record.training.steps if record.training else 0,
        "budget": formats.budget(record),
        "seconds": record.training.seconds if record.training else record.evaluation.seconds,
        "time": formats.seconds(record),
        "device": formats.device(record),
        "sort": {
            "rank": int(standing.rank.rstrip("=")),
            "median": _sortable(found.median),
            "mean": _sortable(found.mean),
            "digits": _sortable(digits(record), least=True),
        },
    }


def _sortable(value: float | None, least: bool = False) -> float | str:
    """A number for sorting; what is not finite comes last."""
    if value is not None and np.isfinite(value):
        return value
    return -1e308 if least and value is None else 1e308


def task_figures(boards: Sequence[Board]) -> list[View]:
    """The error along whatever number the task's runs differ in."""
    return [figure(f) for f in series([record for board in boards for record in board.records])]


def run(record: Record, label: str, place: PurePosixPath) -> View:
    """One record's page."""
    metrics = [_metric(name, found, "") for name, found in record.metrics.items()]
    metrics += [
        _metric(name, found, f"{record.floor_name} ") for name, found in record.floor.items()
    ]
    ranking = record.ranking
    seeds = [
        {
            "seed": seed.seed,
            "diverged": seed.diverged_at,
            "value": formats.number(
                getattr(seed.metrics[ranking.metric], ranking.statistic), ranking.scale
            ),
        }
        for seed in record.seeds
        if seed.seed is not None
    ]
    spec = record.spec.model_dump(mode="json")
    return {
        "record": record,
        "label": label,
        "main": _main(record),
        "origin": formats.origin(record),
        "budget": formats.budget(record),
        "time": formats.seconds(record),
        "floor": _floor_text(record),
        "at_floor": is_at_floor(record),
        "metrics": metrics,
        "seeds": seeds,
        "spec": [
            (key, _shown(value)) for key, value in spec.items() if value not in (None, {}, [])
        ],
        "figures": [figure(f) for f in record_curves(record)],
        "files": _files(record, place),
        "place": place.as_posix(),
        "analyses": json.dumps(record.analyses, indent=1) if record.analyses else "",
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _metric(name: str, found: Statistics, prefix: str) -> View:
    shown = ("median", "mean", "low", "high", "q05", "q95")
    scale_name = "log" if found.median is not None and 0 < abs(found.median) < 1e-2 else "linear"
    return {"name": prefix + name} | {
        k: formats.number(getattr(found, k), scale_name) for k in shown
    }


def _files(record: Record, place: PurePosixPath) -> list[tuple[str, str]]:
    files = [("record (JSON)", place.as_posix())]
    files.append(
        ("every prompt's values (safetensors)", str(place.with_name(record.per_prompt.file)))
    )
    if record.weights is not None:
        files.append(("weights (safetensors)", str(place.with_name(record.weights.file))))
    return files


def compared(standing: Standing) -> str:
    """What a comparison needs of a record: its bootstrap, and each prompt's mean over seeds."""
    log = standing.record.ranking.scale == "log"
    found = standing.resampled
    each = scale(standing.values, log).mean(axis=0)
    content = {
        "mean": found.mean,
        "first": _packed(found.first),
        "second": _packed(found.second) if found.second is not found.first else None,
        "prompts": _packed(each),
    }
    return json.dumps(content, separators=(",", ":"))


def _packed(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()


def comparable(boards: Sequence[Board]) -> View:
    """The choices of a task's comparison: evaluations, and the rows of each."""
    found = []
    for key, own in groups(boards).items():
        record = own[0].records[0]
        rows = [
            {
                "id": s.record.id,
                "name": f"{s.label} · {s.record.spec.dtype} · {s.record.spec.origin}",
                "value": _main(s.record),
                "median": formats.number(s.record.metrics[record.ranking.metric].median,
                                         record.ranking.scale),
                "interval": formats.interval(s.record.metrics[record.ranking.metric].low,
                                             s.record.metrics[record.ranking.metric].high,
                                             record.ranking.scale),
                "seeds": len(s.record.spec.seeds),
                "parameters": s.record.parameters,
                "budget": formats.budget(s.record),
            }
            for board in own
            for s in board.standings
        ]  # fmt: skip
        found.append(
            {
                "key": key,
                "title": formats.arguments(record.evaluation.task_args) or "default arguments",
                "prompts": record.evaluation.prompts,
                "metric": record.ranking.metric,
                "log": record.ranking.scale == "log",
                "lower": record.ranking.better == "lower",
                "rows": rows,
            }
        )
    data = json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")
    return {"evaluations": found, "data": data}
