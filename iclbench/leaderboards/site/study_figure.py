"""A study's figure on the site: line plots, dot plots over categories, or maps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...api.record import Record
from ...console import capitalized
from ...sweeps.figure import CURVE, NOT_FIELDS, Figure
from ..descriptions import Descriptions
from ..figures.axes import metric_of, shown, y_title
from ..figures.distinct import with_distinct_lines
from ..figures.line import Line
from ..figures.panels import Panel, drawn, label_of, panels
from ..figures.references import is_numeric
from ..figures.wording import DIGITS_OF, floor_name, floor_names, labels_in_words, worded
from ..formats import digits_of, linear, short
from ..study_notes import StudyNotes
from .dot_list import Dot, dot_plot
from .figure import View, figure
from .heat import shared_maps
from .hues import hues_of
from .magnitudes import RATIO_OF_CURVES, extent, finite_value, spans_magnitudes
from .minus import with_minus
from .plot_notes import INTERVALS, SEEDS
from .plots import plot

#: A floor is named and not drawn where it lies so many times the lines' own height away from them,
#: on a logarithmic axis and on others: the lines would be too flat to read.
MOST_AWAY_LOG, MOST_AWAY = 1.2, 4.0
#: A line of a floor, and the values by those of the x axis of all that agree with it.
Floor = tuple[Line, dict[Any, float]]


def study_views(described: Figure, records: Sequence[Record], about: Descriptions) -> list[View]:
    """The parts of a figure, each with its `kind`: lines, dots or maps.

    Raises UsageError where the records lack what the figure shows.
    """
    if described.maps is not None:
        return [_maps(described.maps, described.lines, records, about)]
    described = with_distinct_lines(described, records)
    rows = worded(panels(described, records), described, records, about)
    panels_drawn = [panel for row in rows for panel in row]
    groups = dict.fromkeys(line.group for panel in panels_drawn for line in panel.lines)
    hues = _hues(list(groups), described, records, about)
    # A score of which more is better, such as accuracy, is no magnitude.
    free = described.log_y is None and all(r.ranking.better == "lower" for r in records)
    spread = INTERVALS if described.x == CURVE else SEEDS
    floor = floor_name(records)
    style = _Style(hues, floor, floor_names(described, records, rows, floor), spread)
    return [_panel(panel, free, style) for panel in panels_drawn]


@dataclass(frozen=True)
class _Style:
    """The hue of each group of lines, what floors are called, and what bars are."""

    hues: Mapping[str, int]
    floor: str
    #: The same of each group.
    floors: Mapping[str, str]
    spread: str


def _hues(
    groups: Sequence[str], described: Figure, records: Sequence[Record], about: Descriptions
) -> dict[str, int]:
    """The hue of each group of lines in every panel: its model's, if the group is of one model."""
    models: dict[str, set[str]] = {}
    for record in drawn(described, records):
        models.setdefault(label_of(described.lines, record), set()).add(record.spec.model)
    known = [group for group in groups if group in models]
    if all(len(models[group]) == 1 for group in known):
        hues = hues_of([next(iter(models[group])) for group in known], about)
    else:
        hues = list(range(len(known)))
    # A group without records is that of a floor.
    return dict.fromkeys(groups, 0) | dict(zip(known, hues, strict=True))


def shown_values(described: Figure, record: Record, about: Descriptions) -> str:
    """The numbers that the figure shows of a record, named; empty for a curve or a map."""
    if described.maps is not None or described.x in NOT_FIELDS:
        return ""
    texts = []
    for name in (metric_of(one, record) for one in described.metrics):
        value = shown(described, record.metrics[name], record)
        title, words = y_title(described, name, record), about.task(record.spec.task).metric(name)
        titled = title.removesuffix(name) + words
        titled = digits_of(words) if title.startswith(DIGITS_OF) else titled
        texts.append(f"{titled} {linear(value)}")
    return "; ".join(texts)


def published_view(notes: StudyNotes) -> View | None:
    """The numbers that the paper states: a dot plot, or a single number as text; None for none."""
    if not notes.published:
        return None
    title = notes.published_as
    if len(notes.published) == 1:
        (one,) = notes.published
        text = with_minus(one.text)
        return {"kind": "number", "title": title, "axis": notes.metric, "label": one.name,
                "text": text}  # fmt: skip
    values = [one.value for one in notes.published]
    spans = spans_magnitudes(values, RATIO_OF_CURVES)
    is_log = spans or max(values) < 1e-2 or min(values) >= 100
    lines = [
        (one.name, [Dot(one.value, with_minus(one.text), reference=one.bound is not None)])
        for one in notes.published
    ]
    return {
        "kind": "dots",
        "title": title,
        "dots": dot_plot(title, notes.metric, lines, log=is_log),
    }


def _maps(
    metric: str, fields: tuple[str, ...], records: Sequence[Record], about: Descriptions
) -> View:
    """One row of maps per record; they share the scales of their groups."""
    labels = labels_in_words(fields, records, about)
    labeled = zip(labels, shared_maps(records, metric), strict=True)
    rows = [{"label": label, "maps": maps} for label, maps in labeled]
    return {"kind": "maps", "title": metric, "rows": rows}


def _panel(panel: Panel, free: bool, style: _Style) -> View:
    """A panel of lines, or of dots.

    Where the figure leaves it `free`, values over many magnitudes get a logarithmic axis.
    """
    values = [v for line in panel.lines for v in line.y]
    if free and not panel.in_digits and spans_magnitudes(values):
        panel = replace(panel, log_y=True)
    title = capitalized(panel.y_title)
    title += f", {panel.column}" if panel.column else ""
    xs = {x for line in panel.lines for x in line.x}
    if is_numeric([*xs]) and len(xs) > 1:
        return _lines(panel, title, style)
    return _dots(panel, title, style)


def _lines(panel: Panel, title: str, style: _Style) -> View:
    """A line plot."""
    solid: list[dict[str, Any]] = []
    floors: list[Floor] = []
    for line in panel.lines:
        points = [(x, finite_value(y)) for x, y in zip(line.x, line.y, strict=True)]
        if line.floor:
            _add_floor(floors, line, {x: y for x, y in points if y is not None})
        else:
            hue = style.hues[line.group]
            solid.append(_points(points, line.name) | _bars(line) | {"hue": hue})
    dotted: list[dict[str, Any]] = []
    for line, ys in floors:
        name = style.floors[line.group]
        name = line.name if any(name == known["name"] for known in dotted) else name
        dotted.append({**_points(sorted(ys.items()), name), "reference": True})
    # Floors that differ by a line would hide it.
    dotted = dotted[:1] if len(dotted) > 3 else dotted
    # Digits are read from 0 to the floor.
    level = "" if panel.in_digits else _far_level(dotted, solid, log=panel.log_y)
    if level:
        title = f"{title} ({style.floor}: {with_minus(level)})"
        dotted = []
    shown = [*solid, *dotted]
    view = plot(title, panel.x_title, panel.y_title, shown, log=panel.log_y, log_x=panel.log_x,
                spread=style.spread)  # fmt: skip
    return {"kind": "lines", "title": title, "figure": figure(view)}


def _far_level(
    floors: Sequence[dict[str, Any]], lines: Sequence[dict[str, Any]], *, log: bool
) -> str:
    """Where floors are that would leave the lines a small part of the axis; empty for others."""
    known = [v for line in lines for key in ("y", "low", "high") for v in line.get(key, ())]
    values = [v for line in floors for v in line["y"]]
    (low, high), (lowest, highest) = (
        [(math.log10(v) if log else v) for v in extent(some, log) or (1.0, 1.0)]
        for some in (known, values)
    )
    height = max(high - low, 1.0 if log else 0.0)
    most = MOST_AWAY_LOG if log else MOST_AWAY
    if not height or max(low - highest, lowest - high) <= most * height:
        return ""
    level = lowest if highest < low else highest
    return short(10**level, 2) if log else linear(level)


def _add_floor(floors: list[Floor], line: Line, ys: dict[Any, float]) -> None:
    """Add a line's floor to one that it agrees with, or as one of its own."""
    for _, known in floors:
        shared = [x for x in ys if x in known]
        is_level = len({*ys.values(), *known.values()}) == 1
        if is_level or (shared and all(known[x] == ys[x] for x in shared)):
            known.update(ys)
            return
    if ys:
        floors.append((line, ys))


def _points(pairs: Sequence[tuple[Any, float | None]], name: str) -> dict[str, Any]:
    return {"name": name, "x": [x for x, _ in pairs], "y": [y for _, y in pairs]}


def _bars(line: Line) -> dict[str, Any]:
    """The ends of a line's bars, where it has them at every point."""
    if line.above is None or line.below is None:
        return {}
    low: list[float | None] = []
    high: list[float | None] = []
    for y, above, below in zip(line.y, line.above, line.below, strict=True):
        known = all(finite_value(v) is not None for v in (y, above, below))
        low.append((y or 0.0) - (below or 0.0) if known else None)
        high.append((y or 0.0) + (above or 0.0) if known else None)
    if any(a != b for a, b in zip(low, high, strict=True)):
        # Bars at many points are a band.
        return {"low": low, "high": high, "band": line.dense}
    return {}


def _dots(panel: Panel, title: str, style: _Style) -> View:
    """A dot plot with a line per category of the x axis."""
    categories: dict[str, list[Dot]] = {}
    for line in panel.lines:
        for i, (x, y) in enumerate(zip(line.x, line.y, strict=True)):
            value = finite_value(y)
            if value is None:
                continue
            above, below = (
                finite_value(side[i]) if side is not None else None
                for side in (line.above, line.below)
            )
            dot = Dot(
                value,
                linear(value),
                style.hues[line.group],
                style.floor if line.floor else line.name,
                low=None if below is None else value - below,
                high=None if above is None else value + above,
                reference=line.floor,
            )
            label = f"{panel.x_title} {x}" if is_numeric([x]) else str(x)
            categories.setdefault("all" if x is None else label, []).append(dot)
    view = dot_plot(title, panel.y_title, list(categories.items()), log=panel.log_y)
    return {"kind": "dots", "title": title, "dots": view}
