"""The figures of the site, in Plotly's terms; `svg` draws what readers see first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...api.record import Record
from ...api.statistics import Curve
from ..board import Board
from ..curves import COST_TITLES, median_curve
from ..row import PROFILE, Row, floor_label

#: The most lines in a figure, which is the number of colors.
MOST_LINES = 10

Plot = dict[str, Any]


def plot(title: str, x: str, y: str, lines: Sequence[Plot], *, log: bool, log_x: bool = False) -> (
    Plot
):  # fmt: skip
    """A figure of lines {x, y, name[, low, high, dotted]} with titled axes; colors go by order."""
    return {
        "title": title,
        "x": {"title": x, "log": log_x},
        "y": {"title": y, "log": log},
        "lines": [{**line, "color": i % MOST_LINES} for i, line in enumerate(lines)],
    }


def best_of_models(rows: Iterable[Row]) -> list[Row]:
    """The best row of each model with weights of one origin, the trained first; MOST_LINES of them.

    A board's rows are in that order.
    """
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        best.setdefault((row.origin, row.record.spec.model), row)
    return list(best.values())[:MOST_LINES]


def profiles(board: Board) -> Plot | None:
    """The precision profile of each model's best row; None if digits do not rank."""
    lines = [
        {"name": row.label, "x": list(PROFILE), "y": list(row.profile)}
        for row in best_of_models(board.rows)
        if row.profile is not None
    ]
    if not lines:
        return None
    title = f"prompts solved, {board.dtype}"
    digits = f"digits of {board.ranking.metric} (−log₁₀ of the absolute error)"
    return plot(title, digits, "fraction of prompts", lines, log=False)


def board_curves(board: Board) -> list[Plot]:
    """The curves of each model's best row, one plot per metric with a second axis."""
    rows = best_of_models(board.rows)
    names = sorted({name for row in rows for name in row.record.curves})
    plots = []
    for name in names:
        with_curve = [row for row in rows if name in row.record.curves]
        if all(len(row.record.curves[name].values) < 2 for row in with_curve):
            continue
        lines = [_line(row.label, row.record.curves[name]) for row in with_curve]
        first = with_curve[0].record
        floor = first.main.floor.curves.get(name)
        lines += [_line(floor_label(first), floor) | {"dotted": True}] if floor else []
        title = f"{name}, {board.dtype}"
        plots.append(plot(title, first.curves[name].axis, f"median {name}", lines,
                          log=_is_log(lines)))  # fmt: skip
    return plots


def validation_curves(board: Board) -> list[Plot]:
    """What was validated while each model's best row was trained, against operations and time."""
    rows = [row for row in best_of_models(board.rows) if row.record.validation_curve]
    plots = []
    for cost in ("operations", "seconds"):
        lines = []
        for row in rows:
            curve = row.record.validation_curve
            if curve is None or None in getattr(curve, cost):
                continue
            name = f"{row.label}{f', {row.track}' if row.track else ''}"
            lines.append({"name": name, "x": getattr(curve, cost), "y": median_curve(curve)})
        if lines:
            about = f"{board.ranking.statistic} of {board.ranking.metric}, median over seeds"
            plots.append(plot(f"validation against {cost}, {board.dtype}", COST_TITLES[cost], about,
                              lines, log=False, log_x=True))  # fmt: skip
    return plots


def record_curves(record: Record) -> list[Plot]:
    """A record's curves with the interval of their mean, and its training curve."""
    plots = []
    for name, curve in record.curves.items():
        if len(curve.values) < 2:
            continue
        lines = [_line("median", curve), _line("mean", curve, "mean")]
        floor = record.main.floor.curves.get(name)
        lines += [_line(floor_label(record), floor) | {"dotted": True}] if floor else []
        plots.append(plot(name, curve.axis, name, lines, log=_is_log(lines)))
    training = record.training
    if training is not None and training.curve:
        lines = [
            {"name": f"seed {seed.seed}", "x": training.curve_steps, "y": list(losses)}
            for seed, losses in zip(record.seeds, zip(*training.curve, strict=True), strict=True)
        ]
        plots.append(plot("training", "step", "loss", lines[:MOST_LINES], log=_is_log(lines)))
    return plots


def _line(name: str, curve: Curve, statistic: str = "median") -> Plot:
    line = {"name": name, "x": curve.values, "y": getattr(curve, statistic)}
    return line | ({"low": curve.low, "high": curve.high} if statistic == "mean" else {})


def _is_log(lines: Sequence[Plot]) -> bool:
    """Whether the values are positive and span more than an order of magnitude or so."""
    values = [v for line in lines for v in line["y"] if v is not None]
    positive = [v for v in values if v > 0]
    if not positive or any(v < 0 for v in values):
        return False
    return bool(max(positive) > 30 * min(positive))


def extent(values: Iterable[float | None], log: bool) -> tuple[float, float] | None:
    """The smallest and largest value that an axis can show, or None."""
    known = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
    return (min(known), max(known)) if known else None
