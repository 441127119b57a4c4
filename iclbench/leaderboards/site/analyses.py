"""A page for each further metric: the maps, plots and numbers that records hold of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ...api.names import is_finite_number
from ...api.record import Record
from ...api.statistics import Curve
from ...console import capitalized
from .. import formats
from ..arguments import argument_pairs
from ..board import Board
from ..curves import curve_statistic
from ..descriptions import Description, Descriptions
from ..grouping import grouped
from ..row import Row
from ..values import single_numbers
from .figure import View, figure
from .heat import shared_maps
from .metrics import metric_about
from .minus import with_minus
from .plots import (
    MOST_LINES,
    Plot,
    best_of_models,
    curve_line,
    lines_of,
    names_of,
    plot,
    spans_lines,
)

#: Numbers of one analysis that are listed, and plots of it.
MOST_NUMBERS, MOST_PLOTS = 60, 24
#: The place of an item in a list.
_INDEX = re.compile("[0-9]{1,9}")
#: A row, its board, and the folder of its page in the site.
Placed = tuple[Row, Board, str]


def by_metric(placed: Sequence[Placed]) -> dict[str, list[Placed]]:
    """The rows of each metric that was asked for beside the task's own, by its name."""
    result: dict[str, list[Placed]] = {}
    for row, board, base in placed:
        for name in dict.fromkeys([*row.record.spec.metrics, *row.record.analyses]):
            result.setdefault(name, []).append((row, board, base))
    return dict(sorted(result.items()))


def metric_page(
    name: str, members: Sequence[Placed], measured: Measured, about: Descriptions
) -> View:
    """What a metric is, and what all records hold of it, in groups by board.

    Where no record has maps or plots of its own, every group has plots of its records' lines.
    """
    groups = grouped(members, lambda one: (one[2], id(one[1])))
    views = [_group(name, group, measured, about) for group in groups.values()]
    has_curves_only = not any(r["maps"] or r["figures"] for view in views for r in view["records"])
    for view, group in zip(views, groups.values(), strict=True):
        if has_curves_only and len(group) > 1:
            view["overview"] = [figure(one) for one in _overview(name, group, measured, about)]
    return {
        "metric": name,
        "about": metric_about(name),
        "count": len(members),
        "studies": sorted({view["study"] for view in views if view["study"]}),
        "has_maps": any(r["maps"] for view in views for r in view["records"]),
        "groups": views,
    }


def _group(name: str, members: Sequence[Placed], measured: Measured, about: Descriptions) -> View:
    """The records of a board, and the study that they are of."""
    _, board, base = members[0]
    labels = names_of([row for row, _, _ in members], about)
    maps_of_each = shared_maps([row.record for row, _, _ in members], name)
    return {
        "title": f"{board.title}, {board.dtype}",
        "setting": argument_pairs(board.evaluation.task_args),
        "study": base.partition("studies/")[2],
        "overview": [],
        "is_whole": len(members) <= MOST_LINES,
        "records": [
            _record(name, one, measured, label, about) | {"maps": maps}
            for one, label, maps in zip(members, labels, maps_of_each, strict=True)
        ],
    }


def _overview(
    name: str, members: Sequence[Placed], measured: Measured, about: Descriptions
) -> Iterator[Plot]:
    """A plot of each curve, with a line per record, or for the best of each model if too many."""
    rows = [row for row, _, _ in members]
    if len(rows) > MOST_LINES:
        rows = best_of_models(rows)
    curves: dict[str, list[tuple[Row, Curve]]] = {}
    for row in rows:
        for metric, curve in _curves(name, row.record, measured):
            curves.setdefault(metric, []).append((row, curve))
    for metric, drawn in curves.items():
        statistic = curve_statistic(metric, drawn[0][0].record)
        curves_drawn = [curve_line(curve, statistic) for _, curve in drawn]
        lines = lines_of([row for row, _ in drawn], curves_drawn, about)
        task = about.task(drawn[0][0].record.spec.task)
        yield _curve_plot(metric, drawn[0][1].axis, statistic, lines, task)


def _record(name: str, placed: Placed, measured: Measured, label: str, about: Descriptions) -> View:
    row, _, base = placed
    record, task = row.record, about.task(row.record.spec.task)
    analyses = [one for one in record.analyses.get(name, []) if isinstance(one, dict)]
    return {
        "page": f"{base}/{record.id}.html",
        "label": label,
        "figures": [figure(one) for one in _plots(analyses[0])] if analyses else [],
        "seeds": ["value" if s.seed is None else f"seed {s.seed}" for s in record.seeds],
        "numbers": _numbers_by_seed(analyses),
        "values": (values := _values(name, record, measured, task)),
        "has_floor": any(value["floor"] for value in values),
        "curves": [
            figure(
                _curve_plot(
                    metric,
                    curve.axis,
                    statistic,
                    [{"name": statistic} | curve_line(curve, statistic)],
                    task,
                )
            )
            for metric, curve in _curves(name, record, measured)
            for statistic in [curve_statistic(metric, record)]
        ],
    }


class Measured:
    """What the records of each task measure, with and without being asked for a metric."""

    def __init__(self, everyone: Iterable[Placed]) -> None:
        records = [row.record for row, _, _ in everyone]
        self._by_task = grouped(records, lambda record: record.spec.task)
        self._without: dict[tuple[str, str], set[str] | None] = {}

    def only_with(self, name: str, record: Record) -> list[str]:
        """The metrics that this record has only because it was asked for this one."""
        further = self._added(name, record)
        others = [self._added(other, record) for other in record.spec.metrics]
        # Records that were asked for two metrics are often the only ones with one of them.
        narrower = {metric for other in others if set(other) < set(further) for metric in other}
        return [metric for metric in further if metric not in narrower]

    def _added(self, name: str, record: Record) -> list[str]:
        """The metrics that records of the same task have only if they were asked for this one."""
        if name not in record.spec.metrics:
            return []
        shown = self._shown_without(name, record.spec.task)
        if shown is None and name in record.analyses:
            # What belongs to the task alone is not known, and the analysis has its own numbers.
            return []
        shown = (shown or set()) | {record.ranking.metric}
        return [metric for metric in record.metrics if metric not in shown]

    def _shown_without(self, name: str, task: str) -> set[str] | None:
        """The metrics of the task's records that were not asked for one; None if all were."""
        key = (name, task)
        if key not in self._without:
            others = [r for r in self._by_task[task] if name not in r.spec.metrics]
            self._without[key] = set().union(*(r.metrics for r in others)) if others else None
        return self._without[key]


def _values(name: str, record: Record, measured: Measured, task: Description) -> list[View]:
    return [
        {
            "metric": task.metric(metric),
            "median": _written(record.metrics[metric].median),
            "mean": _written(record.metrics[metric].mean),
            "floor": _written(record.floor[metric].mean) if metric in record.floor else "",
        }
        for metric in measured.only_with(name, record)
    ]


def _written(value: float | None) -> str:
    """A number without an exponent where it is of the size of 1."""
    is_plain = value is not None and (value == 0 or 1e-2 <= abs(value) < 1e4)
    return with_minus(formats.linear(value) if is_plain else formats.number(value))


def _curves(name: str, record: Record, measured: Measured) -> Iterator[tuple[str, Curve]]:
    """The further metrics with a second axis of more than one point."""
    for metric in measured.only_with(name, record):
        curve = record.curves.get(metric)
        if curve is not None and len(curve.values) > 1:
            yield metric, curve


def _curve_plot(
    metric: str, axis: str, statistic: str, lines: Sequence[Plot], task: Description
) -> Plot:
    words = task.metric(metric)
    title, y = capitalized(words), f"{statistic} {words}"
    log = spans_lines(lines)
    return plot(title, task.axis(axis), y, lines, log=log, most=MOST_LINES)


def _numbers_by_seed(analyses: Sequence[dict[str, Any]]) -> list[View]:
    """The single numbers of every seed's analysis, by their path."""
    by_seed = [dict(single_numbers(analysis)) for analysis in analyses]
    names = list(dict.fromkeys(name for numbers in by_seed for name in numbers))[:MOST_NUMBERS]
    return [
        {
            "name": name,
            "values": [with_minus(formats.linear(numbers.get(name))) for numbers in by_seed],
        }
        for name in names
    ]


def _plots(analysis: dict[str, Any]) -> list[Plot]:
    """The plots that an analysis describes under `plots`; what is not as described is left out."""
    described = analysis.get("plots")
    drawn = [_plot(one, analysis) for one in described] if isinstance(described, list) else []
    return [one for one in drawn if one is not None][:MOST_PLOTS]


def _plot(described: Any, analysis: dict[str, Any]) -> Plot | None:
    """A plot {title, x, y, lines}: an axis is {title[, log, path]}, a line {name, path}."""
    if not isinstance(described, dict):
        return None
    title, axes = str(described.get("title", ""))[:100], []
    for key in ("x", "y"):
        axis = described.get(key)
        axes.append(axis if isinstance(axis, dict) else {})
    given = _at(analysis, axes[0].get("path"))
    lines = []
    listed = described.get("lines")
    for line in listed if isinstance(listed, list) else ():
        ys = _at(analysis, line.get("path")) if isinstance(line, dict) else None
        if ys:
            xs = given if given and len(given) == len(ys) else list(range(1, len(ys) + 1))
            lines.append({"name": str(line.get("name", ""))[:60], "x": xs, "y": ys})
    if not lines:
        return None
    x_title, y_title = (str(axis.get("title", ""))[:60] for axis in axes)
    log_x, log_y = (axis.get("log") is True for axis in axes)
    return plot(title, x_title, y_title, lines, log=log_y, log_x=log_x, most=MOST_LINES)


def _at(analysis: Any, path: Any) -> list[Any] | None:
    """The list of numbers at a path such as layers.0.misfit; with *, one number of every item."""
    if not isinstance(path, str):
        return None
    values = _walk(analysis, path.split("."))
    sound = isinstance(values, list) and all(v is None or is_finite_number(v) for v in values)
    return values if sound else None


def _walk(content: Any, parts: Sequence[str]) -> Any:
    if not parts:
        return content
    first, rest = parts[0], parts[1:]
    if first == "*":
        return [_walk(item, rest) for item in content] if isinstance(content, list) else None
    if isinstance(content, dict):
        return _walk(content.get(first), rest)
    # Python refuses to read a number of thousands of digits.
    if isinstance(content, list) and _INDEX.fullmatch(first) and int(first) < len(content):
        return _walk(content[int(first)], rest)
    return None
