"""Draw the matrices that a metric's analyses hold as heat maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...api.errors import UsageError, unknown
from ...api.names import is_finite_number
from ...api.record import Record
from .. import escaping

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Pixels: the side of a map, the gap between maps, and the margin.
SIDE, GAP, MARGIN = 200, 50, 80
#: Larger maps are left out: a page must stay readable.
MOST_CELLS = 40_000
#: Pixels: the bright disk behind a label, so that it can be read on any color, and behind a dot.
BEHIND_LABEL, BEHIND_DOT = 15, 6
#: What stands for a point whose label is not said.
DOT = "•"
#: Pixels right of the maps for a color scale, and from the maps to it, beyond the titles of rows.
SCALE, TO_SCALE = 60, 40


def draw_maps(metric: str, rows: Sequence[tuple[str, Record]], title: str) -> go.Figure:
    """Draw one row per labelled record: the maps of its first seed, one per column.

    A map is {name, values}: a matrix with its first row at the top. With `x` and `y`, the values
    of its columns and rows, it is drawn upwards. `points` {x, y, text} are drawn on top. Maps of
    one `group` share a color scale; others have their own. A scale is symmetric about 0 if the
    values have both signs. Raises UsageError for a record without maps of this metric.
    """
    from plotly.subplots import make_subplots

    by_record = [(label, maps_of(metric, record)) for label, record in rows]
    columns = max(len(maps) for _, maps in by_record)
    names = [
        escaping.plotly(str(maps[i]["name"])) if i < len(maps) else ""
        for _, maps in by_record
        for i in range(columns)
    ]
    width, height = (n * SIDE + (n - 1) * GAP for n in (columns, len(by_record)))
    figure = make_subplots(
        len(by_record),
        columns,
        subplot_titles=names,
        row_titles=[label for label, _ in by_record],
        horizontal_spacing=GAP / width,
        vertical_spacing=GAP / height,
    )
    ranges = color_ranges([heat_map for _, maps in by_record for heat_map in maps])
    for row, (_, maps) in enumerate(by_record, start=1):
        for column, heat_map in enumerate(maps, start=1):
            trace = _heat_map(heat_map, ranges[group_of(heat_map)])
            figure.add_trace(trace, row=row, col=column)
            if isinstance(points := heat_map.get("points"), dict):
                name = str(heat_map["name"])
                figure.add_trace(_points(name, points), row=row, col=column)
            direction = {} if "y" in heat_map else {"autorange": "reversed"}
            figure.update_xaxes(showticklabels="x" in heat_map, row=row, col=column)
            figure.update_yaxes(showticklabels="y" in heat_map, **direction, row=row, col=column)
    figure.update_layout(
        title=title,
        template="plotly_white",
        width=width + 2 * MARGIN,
        height=height + 2 * MARGIN,
        margin=dict.fromkeys("lrtb", MARGIN),
    )
    if len(ranges) == 1:  # several scales would not have room
        scale = {"x": 1 + TO_SCALE / width, "xanchor": "left", "thickness": 12, "len": 1}
        first = next(figure.select_traces({"type": "heatmap"}))
        first.update(showscale=True, colorbar=scale)
        figure.update_layout(width=width + 2 * MARGIN + SCALE, margin_r=MARGIN + SCALE)
    return figure


def shown_labels(name: str, labels: Sequence[object]) -> list[str]:
    """The labels of a map's points: where its name has some, such as a class, others are dots."""
    texts = [str(label) for label in labels]
    named = set(re.findall(r"\w+", name)) & {*texts}
    return [text if not named or text in named else DOT for text in texts]


def _points(name: str, points: dict[str, Any]) -> go.Scatter:
    import plotly.graph_objects as go

    labels = points.get("text")
    texts = shown_labels(name, labels) if isinstance(labels, list) else []
    return go.Scatter(
        x=points.get("x"),
        y=points.get("y"),
        text=[escaping.plotly(text) for text in texts],
        mode="markers+text" if texts else "text",
        marker={
            "color": "rgba(255, 255, 255, 0.85)",
            "size": [BEHIND_DOT if text == DOT else BEHIND_LABEL for text in texts],
        },
        textfont={"color": "#c0392b"},
        showlegend=False,
    )


def _heat_map(heat_map: dict[str, Any], color_range: tuple[float, float]) -> go.Heatmap:
    import plotly.graph_objects as go

    low, high = color_range
    return go.Heatmap(
        z=heat_map["values"],
        x=heat_map.get("x"),
        y=heat_map.get("y"),
        zmin=low,
        zmax=high,
        colorscale="RdBu" if low < 0 else "Blues",
        showscale=False,
        name=escaping.plotly(str(heat_map["name"])),
    )


def maps_of(metric: str, record: Record) -> list[dict[str, Any]]:
    """The maps of a record's first seed; raises UsageError if it has none of this metric."""
    if metric not in record.analyses:
        raise UsageError(f"figure: {unknown('analysis', metric, list(record.analyses))}")
    maps = maps_in(record, metric)
    if not maps:
        raise UsageError(f"figure: the analysis {metric} of {record.spec.model} holds no maps")
    return maps


def maps_in(record: Record, metric: str) -> list[dict[str, Any]]:
    """The maps of the first seed's analysis that can be drawn; what else it holds is left out."""
    analysis = next(iter(record.analyses.get(metric, [])), None)
    maps = analysis.get("maps") if isinstance(analysis, dict) else None
    return [one for one in maps if _is_map(one)] if isinstance(maps, list) else []


def _is_map(content: Any) -> bool:
    """Whether this is {name, values} with a matrix of numbers or nulls."""
    if not isinstance(content, dict) or "name" not in content:
        return False
    rows = content.get("values")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        return False
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not 0 < len(rows) * max(widths) <= MOST_CELLS:
        return False
    return all(value is None or is_finite_number(value) for row in rows for value in row)


def group_of(heat_map: dict[str, Any]) -> str:
    """The name of the color scale that a map shares."""
    return str(heat_map.get("group") or heat_map["name"])


def color_ranges(maps: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """Each group's smallest and largest value; ± the largest magnitude if any is negative."""
    by_group: dict[str, list[float]] = {}
    for heat_map in maps:
        values = [v for line in heat_map["values"] for v in line if v is not None]
        by_group.setdefault(group_of(heat_map), []).extend(values)
    ranges = {}
    for group, values in by_group.items():
        low, high = min(values, default=0.0), max(values, default=1.0)
        largest = max(-low, high)
        ranges[group] = (-largest, largest) if low < 0 else (low, high)
    return ranges
