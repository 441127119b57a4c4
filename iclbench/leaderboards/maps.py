"""Matrices that analyses hold, as heat maps: a row a record, a column a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..api.errors import UsageError, unknown
from ..api.record import Record

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Pixels of one map, between maps, and around them.
SIDE, BETWEEN, AROUND = 200, 50, 80


def draw_maps(metric: str, rows: Sequence[tuple[str, Record]], title: str) -> go.Figure:
    """The maps of each labelled record's first seed; raises UsageError where there are none.

    A map is {name, values}: a matrix, its first row at the top; or with x and y, what its columns
    and rows stand for, drawn upwards. It may have points, {x, y, text}, on top. Those with one
    `group` have one scale of colours, others each its own, about 0 where they have both signs.
    """
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    found = [(label, _maps(metric, record)) for label, record in rows]
    wide = max(len(maps) for _, maps in found)
    names = [maps[i]["name"] if i < len(maps) else "" for _, maps in found for i in range(wide)]
    width, height = (n * SIDE + (n - 1) * BETWEEN for n in (wide, len(found)))
    figure = make_subplots(
        len(found),
        wide,
        subplot_titles=names,
        row_titles=[label for label, _ in found],
        horizontal_spacing=BETWEEN / width,
        vertical_spacing=BETWEEN / height,
    )
    ranges = _ranges([one for _, maps in found for one in maps])
    for row, (_, maps) in enumerate(found, start=1):
        for column, one in enumerate(maps, start=1):
            low, high = ranges[_group(one)]
            signed = low < 0
            shown = go.Heatmap(
                z=one["values"], x=one.get("x"), y=one.get("y"), zmin=low, zmax=high,
                colorscale="RdBu" if signed else "Blues", showscale=False, name=one["name"],
            )  # fmt: skip
            figure.add_trace(shown, row=row, col=column)
            if "points" in one:
                points = {"mode": "text", "textfont": {"color": "#c0392b"}, "showlegend": False}
                figure.add_trace(go.Scatter(**one["points"], **points), row=row, col=column)
            upwards = {} if "y" in one else {"autorange": "reversed"}
            figure.update_xaxes(showticklabels="x" in one, row=row, col=column)
            figure.update_yaxes(showticklabels="y" in one, **upwards, row=row, col=column)
    figure.update_layout(
        title=title,
        template="plotly_white",
        width=width + 2 * AROUND,
        height=height + 2 * AROUND,
        margin=dict.fromkeys("lrtb", AROUND),
    )
    return figure


def _maps(metric: str, record: Record) -> list[dict[str, Any]]:
    if metric not in record.analyses:
        raise UsageError(f"figure: {unknown('analysis', metric, list(record.analyses))}")
    maps: list[dict[str, Any]] = record.analyses[metric][0].get("maps", [])
    if not maps:
        raise UsageError(f"figure: the analysis {metric} of {record.spec.model} holds no maps")
    return maps


def _group(one: dict[str, Any]) -> str:
    return str(one.get("group") or one["name"])


def _ranges(maps: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The smallest and largest value of each group; ± the largest where both signs are there."""
    values: dict[str, list[float]] = {}
    for one in maps:
        every = [v for line in one["values"] for v in line if v is not None]
        values.setdefault(_group(one), []).extend(every)
    found = {}
    for group, every in values.items():
        low, high = min(every, default=0.0), max(every, default=1.0)
        largest = max(-low, high)
        found[group] = (-largest, largest) if low < 0 else (low, high)
    return found
