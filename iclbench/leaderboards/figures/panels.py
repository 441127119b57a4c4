"""What a `Figure` shows: panels of lines, from records, before anything draws them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...api.errors import UsageError
from ...api.record import MAIN, Record
from ...api.statistics import finite
from ...sweeps.fields import STATE, field_of
from ...sweeps.figure import COSTS, CURVE, NOT_FIELDS, TRAINING, Figure
from ..arguments import in_label
from ..curves import curve_statistic, median_curve, seed_scores
from ..grouping import grouped
from .axes import in_digits, is_log, metric_of, require_x, shown, x_title, y_title
from .line import Line, bounds_of_means
from .references import is_numeric, with_references


@dataclass(frozen=True)
class Panel:
    """Lines on one pair of axes. `column` is the value that its records share, or empty."""

    column: str
    x_title: str
    y_title: str
    log_x: bool
    log_y: bool
    #: Whether y is digits, which are logarithms already.
    in_digits: bool
    lines: tuple[Line, ...]


def panels(figure: Figure, records: Sequence[Record]) -> list[list[Panel]]:
    """One row of panels per metric, one column per value of `figure.panels`.

    Raises UsageError without records, and for an unknown metric or an axis that no record has.
    """
    chosen = _chosen(figure, records)
    if not chosen:
        raise UsageError("a figure needs records")
    records = drawn(figure, records)
    if not records and figure.x == TRAINING:
        raise UsageError("a figure of training needs records of trainings")
    validated = any(r.validation_curve and r.validation_curve.steps for r in chosen)
    if not records and validated and figure.x in COSTS:
        raise UsageError(f"the {figure.x} of these models can't be counted")
    if not records and figure.x in COSTS:
        raise UsageError(f"a figure against {figure.x} needs records of trainings with validation")
    if not records:
        raise UsageError("figure: no record tells the size of its model's state")
    if figure.x not in {None, *NOT_FIELDS}:
        require_x(str(figure.x), records)
    columns = _columns(figure, records)
    return [
        [_panel(figure, metric, title, members) for title, members in columns.items()]
        for metric in figure.metrics
    ]


def drawn(figure: Figure, records: Sequence[Record]) -> list[Record]:
    """The records that the figure does not leave out, and that have what its x axis shows."""
    chosen = _chosen(figure, records)
    if figure.x == TRAINING:
        return [record for record in chosen if record.training]
    if figure.x in COSTS:
        # Operations are unknown where an operator of the model has no formula.
        return [
            r
            for r in chosen
            if r.validation_curve
            and r.validation_curve.steps
            and None not in getattr(r.validation_curve, figure.x)
        ]
    if figure.x == STATE:
        return [record for record in chosen if record.state_bytes is not None]
    return chosen


def _chosen(figure: Figure, records: Sequence[Record]) -> list[Record]:
    return [r for r in records if _lacks(r, figure.lacks)]


def _panel(figure: Figure, metric: str | None, title: str, members: list[Record]) -> Panel:
    _require_one_scale(figure, metric, members)
    lines = [
        line
        for label, group in _by_label(figure.lines, members).items()
        for line in _lines(figure, metric, label, group)
    ]
    if figure.x == STATE:
        lines.append(_floor_over_states(figure, metric_of(metric, members[0]), members))
    numeric = is_numeric([x for line in lines for x in line.x if x is not None])
    if numeric:
        lines = list(with_references(lines))
    log_x = figure.log_x or (figure.log_x is None and figure.x in {STATE, *COSTS})
    return Panel(
        column=title,
        x_title=x_title(figure, metric, members[0]),
        y_title=y_title(figure, metric, members[0]),
        log_x=bool(log_x) and numeric,  # categories have no logarithm
        log_y=is_log(figure, metric, members[0]),
        in_digits=in_digits(figure, metric, members[0]),
        lines=tuple(lines),
    )


def _require_one_scale(figure: Figure, metric: str | None, records: list[Record]) -> None:
    """Raise UsageError where a panel's records have scores that no axis can show together."""
    if figure.x == TRAINING:
        return
    if figure.x in COSTS:
        _require_one_board(records)
    by_title = {y_title(figure, metric, record): record.spec.task for record in records}
    if len(by_title) > 1:
        scales = " and ".join(f"the {title} of {task}" for title, task in by_title.items())
        raise UsageError(f"figure: one panel can't show {scales}; panels keep them apart")


def _require_one_board(records: list[Record]) -> None:
    if len({record.main.digest for record in records}) > 1:
        raise UsageError(
            "figure: one panel can't show scores on different prompts: give fewer records, or "
            "panels by a field that tells them apart, such as eval_prompts"
        )


def _lines(figure: Figure, metric: str | None, label: str, records: list[Record]) -> Iterable[Line]:
    if figure.x == TRAINING:
        return _training_curves(label, records)
    if figure.x in COSTS:
        return _validation_curves(figure.x, label, records)
    if figure.x == CURVE:
        return _curves(figure, metric, label, records)
    return _points(figure, metric, label, records)


def _points(
    figure: Figure, metric: str | None, label: str, records: list[Record]
) -> Iterable[Line]:
    """One line with a point per record, and the floor below it."""
    x = str(figure.x)
    points = sorted(((field_of(r, x), r) for r in records), key=lambda point: _order(point[0]))
    # Of a list, Plotly would make several axes.
    xs = [in_label(v) if isinstance(v, list | tuple) else v for v, _ in points]
    name = metric_of(metric, points[0][1])
    values = [_value(figure, record, name) for _, record in points]
    ranges = [_range_over_seeds(figure, record, name) for _, record in points]
    numeric = is_numeric([x for x in xs if x is not None])
    yield Line(
        group=label,
        name=label,
        x=xs,
        y=list(values),
        # A line between categories would suggest values in between.
        mode="lines+markers" if numeric else "markers",
        above=[high - v for (_, high), v in zip(ranges, values, strict=True)],
        below=[v - low for (low, _), v in zip(ranges, values, strict=True)],
    )
    if x != STATE:
        floors = [shown(figure, r.floor[name], r) if name in r.floor else None
                  for _, r in points]  # fmt: skip
        yield _floor_line(label, xs, floors, "lines" if numeric and len(xs) > 1 else "markers")


def _floor_line(label: str, xs: list[Any], ys: list[float | None], mode: str = "lines") -> Line:
    return Line(label, f"{label}: floor", xs, ys, mode, floor=True)


def _floor_over_states(figure: Figure, metric: str, records: list[Record]) -> Line:
    """The floor from the smallest state to the largest, the same for all models of a board.

    Raises UsageError for records of several boards.
    """
    _require_one_board(records)
    states = [record.state_bytes for record in records if record.state_bytes is not None]
    floor = records[0].floor.get(metric)
    score = None if floor is None else shown(figure, floor, records[0])
    return Line("floor", "floor", [min(states), max(states)], [score, score], floor=True)


def _curves(
    figure: Figure, metric: str | None, label: str, records: list[Record]
) -> Iterable[Line]:
    """One line per record along the second axis of the metric, and the floor's."""
    for record in records:
        name = metric_of(metric, record)
        if name not in record.curves:
            known = ", ".join(record.curves) or "none"
            where = f"{record.spec.model} on {record.spec.task}"
            raise UsageError(f"figure: {where} has no curve of {name}; its curves: {known}")
        curve, statistic = record.curves[name], figure.statistic or curve_statistic(name, record)
        mode = "lines" if len(curve.values) > 1 else "markers"
        above, below = bounds_of_means(curve) if statistic == "mean" else (None, None)
        xs, ys = list(curve.values), list(getattr(curve, statistic))
        yield Line(label, label, xs, ys, mode, above=above, below=below, dense=True)
        if name in record.main.floor.curves:
            floor = record.main.floor.curves[name]
            yield _floor_line(label, list(curve.values), list(getattr(floor, statistic)))


def _training_curves(label: str, records: list[Record]) -> Iterable[Line]:
    """One line per seed of each trained record."""
    for record in records:
        assert record.training is not None
        by_seed = zip(*record.training.curve, strict=True)
        for seed, losses in zip(record.seeds, by_seed, strict=True):
            name, steps = f"{label}, seed {seed.seed}", list(record.training.curve_steps)
            yield Line(label, name, steps, list(losses), "lines" if len(steps) > 1 else "markers")


def _validation_curves(x: str, label: str, records: list[Record]) -> Iterable[Line]:
    """One line per record: the median over seeds at each point, with their range as bars."""
    for record in records:
        curve = record.validation_curve
        assert curve is not None
        scores = seed_scores(curve)
        middle = np.median(scores, axis=0)
        with np.errstate(invalid="ignore"):
            above, below = scores.max(axis=0) - middle, middle - scores.min(axis=0)
        yield Line(
            group=label,
            name=label,
            x=list(getattr(curve, x)),
            y=list(median_curve(curve)),
            mode="lines+markers",
            above=[finite(value) for value in above],
            below=[finite(value) for value in below],
            dense=True,
        )


def _columns(figure: Figure, records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each panel side by side, with the evaluation it shows as their main one.

    A record with none of the fields that tell panels apart, such as a solver's, is in all of them.
    """
    if not figure.shifts:
        common = [r for r in records if _lacks(r, figure.panels)]
        if len(common) == len(records):
            return _by_label(figure.panels, records)
        columns = _by_label(figure.panels, [r for r in records if not _lacks(r, figure.panels)])
        return {title: [*members, *common] for title, members in columns.items()}
    columns = {name: [_under(r, name) for r in records if name in r.evaluations]
               for name in figure.shifts}  # fmt: skip
    for name, members in columns.items():
        if not members:
            raise UsageError(f"figure: no record has an evaluation under the shift {name}")
    return columns


def _lacks(record: Record, fields: Sequence[str]) -> bool:
    """Whether the record has none of these fields."""
    return all(field_of(record, name) is None for name in fields)


def _under(record: Record, shift: str) -> Record:
    return record.model_copy(update={"evaluations": {MAIN: record.evaluations[shift]}})


def _by_label(fields: tuple[str, ...], records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by their values of these fields, in order of appearance."""
    return grouped(records, lambda record: label_of(fields, record))


def label_of(fields: tuple[str, ...], record: Record) -> str:
    """A record's values of these fields as text, or its model if it has none of them."""
    parts = []
    for name in fields:
        value = field_of(record, name)
        if value is not None:
            text = in_label(value)
            parts.append(text if name in {"model", "task"} else f"{name.split('.')[-1]}={text}")
    return " ".join(parts) or (record.spec.model if fields else "")


def _value(figure: Figure, record: Record, name: str) -> float:
    value = shown(figure, record.metrics[name], record)
    return math.nan if value is None else value


def _range_over_seeds(figure: Figure, record: Record, name: str) -> tuple[float, float]:
    values = [shown(figure, seed[name], record) for seed in record.main.seeds]
    known = [v for v in values if v is not None]
    return (min(known), max(known)) if known else (math.nan, math.nan)


def _order(value: Any) -> tuple[bool, float, str]:
    """A sort key: numbers first, by size, then everything else as text."""
    is_number = isinstance(value, int | float)
    return (not is_number, float(value) if is_number else 0.0, str(value))
