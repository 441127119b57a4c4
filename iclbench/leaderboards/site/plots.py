"""The figures of the site as Plotly's JSON, from which `svg` draws what is seen first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...api.record import Record
from ...api.statistics import Curve
from ..precision import PROFILE, has_digits, profile
from ..tables import Board, Standing

#: Lines in one figure; more can't be told apart.
MOST_LINES = 10

Plot = dict[str, Any]


def plot(title: str, x: str, y: str, lines: Sequence[Plot], *, log: bool, log_x: bool = False) -> (
    Plot
):  # fmt: skip
    """A figure of lines, each {x, y, name[, low, high, dotted]}; colors go by order."""
    return {
        "title": title,
        "x": {"title": x, "log": log_x},
        "y": {"title": y, "log": log},
        "lines": [{**line, "color": i % MOST_LINES} for i, line in enumerate(lines)],
    }


def best_of_models(standings: Iterable[Standing]) -> list[Standing]:
    """The best row of each model, for as many as a figure can show."""
    best: dict[str, Standing] = {}
    for standing in standings:
        best.setdefault(standing.record.spec.model, standing)
    return list(best.values())[:MOST_LINES]


def profiles(board: Board) -> Plot | None:
    """The fraction of prompts that are solved to at least k digits."""
    if not has_digits(board.records[0]):
        return None
    lines = [
        {"name": s.label, "x": list(PROFILE), "y": list(profile(s.values))}
        for s in best_of_models(board.standings)
    ]
    metric = board.records[0].ranking.metric
    return plot(f"prompts solved, {board.records[0].spec.dtype}", f"digits of {metric}",
                "fraction of prompts", lines, log=False)  # fmt: skip


def board_curves(board: Board) -> list[Plot]:
    """For every metric with a second axis, the best row of each model along it."""
    rows = best_of_models(board.standings)
    names = sorted({name for s in rows for name in s.record.curves})
    found = []
    for name in names:
        having = [s for s in rows if name in s.record.curves]
        if all(len(s.record.curves[name].values) < 2 for s in having):
            continue
        lines = [_line(s.label, s.record.curves[name]) for s in having]
        floor = having[0].record.floor_curves.get(name)
        lines += [_line(having[0].record.floor_name, floor) | {"dotted": True}] if floor else []
        axis = having[0].record.curves[name].axis
        title = f"{name}, {board.records[0].spec.dtype}"
        found.append(plot(title, axis, f"median {name}", lines, log=_is_log(lines)))
    return found


def record_curves(record: Record) -> list[Plot]:
    """One record's curves with the interval of their mean, and its training curve."""
    found = []
    for name, curve in record.curves.items():
        if len(curve.values) < 2:
            continue
        lines = [_line("median", curve), _line("mean", curve, "mean")]
        floor = record.floor_curves.get(name)
        lines += [_line(record.floor_name, floor) | {"dotted": True}] if floor else []
        found.append(plot(name, curve.axis, name, lines, log=_is_log(lines)))
    training = record.training
    if training is not None and training.curve:
        lines = [
            {"name": f"seed {seed.seed}", "x": training.curve_steps, "y": list(losses)}
            for seed, losses in zip(record.seeds, zip(*training.curve, strict=True), strict=True)
        ]
        found.append(plot("training", "step", "loss", lines[:MOST_LINES], log=_is_log(lines)))
    return found


def _line(name: str, curve: Curve, statistic: str = "median") -> Plot:
    line = {"name": name, "x": curve.values, "y": getattr(curve, statistic)}
    return line | ({"low": curve.low, "high": curve.high} if statistic == "mean" else {})


def _is_log(lines: Sequence[Plot]) -> bool:
    """Errors span orders of magnitude; what is negative or of one magnitude does not."""
    values = [v for line in lines for v in line["y"] if v is not None]
    positive = [v for v in values if v > 0]
    if not positive or any(v < 0 for v in values):
        return False
    return bool(max(positive) > 30 * min(positive))


def extent(values: Iterable[float | None], log: bool) -> tuple[float, float] | None:
    """The smallest and largest that can be shown."""
    known = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
    return (min(known), max(known)) if known else None
