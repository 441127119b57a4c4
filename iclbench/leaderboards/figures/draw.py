"""Draw a `Figure` with Plotly: metrics against a field of the spec or along a curve, or maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...api.errors import UsageError
from ...api.record import Record
from ...sweeps.figure import NOT_FIELDS, Figure
from .. import escaping
from ..row import has_digits
from .maps import draw_maps
from .panels import Line, label_of, panels

if TYPE_CHECKING:
    import plotly.graph_objects as go

FLOOR_LINE = {"dash": "dot", "color": "gray"}


def draw(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """Draw the figure of these records; raises UsageError for an unknown metric or analysis."""
    title = escaping.plotly(figure.title)
    if figure.maps is not None:
        if not records:
            raise UsageError("a figure needs records")
        rows = [(escaping.plotly(label_of(figure.lines, r)), r) for r in records]
        return draw_maps(figure.maps, rows, title)
    return _draw_panels(figure, records, title)


def _draw_panels(figure: Figure, records: Sequence[Record], title: str) -> go.Figure:
    """One row of panels per metric, one column per value of `panels`."""
    from plotly.subplots import make_subplots

    rows = panels(figure, records)
    columns = [panel.column for panel in rows[0]]
    names = {line.group: None for row in rows for panel in row for line in panel.lines}
    colors = dict(zip(names, _colors(len(names)), strict=True))
    drawing = make_subplots(
        len(rows),
        len(columns),
        column_titles=[escaping.plotly(c) for c in columns] if any(columns) else None,
        shared_xaxes=len(rows) > 1,
        shared_yaxes=len(columns) > 1,
        vertical_spacing=0.15 / len(rows),
        horizontal_spacing=0.1 / len(columns),
    )
    in_legend: set[str] = set()
    for row, members in enumerate(rows, start=1):
        for column, panel in enumerate(members, start=1):
            for line in panel.lines:
                trace = _trace(line, colors[line.group], repeated=line.name in in_legend)
                in_legend.add(line.name)
                drawing.add_trace(trace, row=row, col=column)
        kind = "log" if members[0].log_y else "linear"
        drawing.update_yaxes(type=kind, exponentformat="power", row=row)
        drawing.update_yaxes(title=escaping.plotly(members[0].y_title), row=row, col=1)
    drawing.update_xaxes(title=escaping.plotly(rows[0][0].x_title), row=len(rows))
    if rows[0][0].log_x:
        drawing.update_xaxes(type="log")
    about = ""
    if figure.x not in NOT_FIELDS:
        explained = "; digits are −log₁₀ of the absolute error" * has_digits(records[0].ranking)
        about = f"<br><sub>bars are the range over seeds{explained}</sub>"
    drawing.update_layout(title=title + about, template="plotly_white")
    return drawing


def _trace(line: Line, color: str, *, repeated: bool) -> go.Scatter:
    """A line as Plotly draws it."""
    import plotly.graph_objects as go

    name = escaping.plotly(line.name)
    style: dict[str, Any] = {
        "x": line.x,
        "y": line.y,
        "name": name,
        "mode": line.mode,
        "line": FLOOR_LINE if line.floor else {"color": color},
        # The legend shows a name once; clicking it switches the line in every panel.
        "legendgroup": name,
    }
    if repeated or not line.in_legend:
        style["showlegend"] = False
    if line.above is not None:
        thin = {"thickness": 0.5, "width": 0} if line.dense else {}
        style["error_y"] = {"type": "data", "symmetric": False, "array": line.above,
                            "arrayminus": line.below, **thin}  # fmt: skip
    return go.Scatter(**style)


def _colors(count: int) -> list[str]:
    import plotly.express.colors as palettes

    return [palettes.qualitative.D3[i % 10] for i in range(count)]
