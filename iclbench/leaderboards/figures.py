"""Figures from records: metrics against a field of the spec or along a curve; maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from ..api.config import Config
from ..api.errors import UsageError, unknown
from ..api.record import Record
from ..api.spec import ResolvedSpec
from ..files import write_atomically
from .maps import draw_maps

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: What x may be beside a field of the spec: a metric's second axis, or the steps of training.
ALONG = ("curve", "training")
BARS = "bars are the range over seeds"


class Figure(Config):
    """What a figure shows: one line for each value of `lines`, seeds' range as bars, the floor.

    Several metrics are panels above each other, the values of the fields in `panels` panels side by
    side. With `maps` it shows the matrices that a metric's analysis holds instead of lines.
    """

    x: str | None = Field(
        None,
        description="a field such as model_args.layers; curve: the second axis of y; training",
    )
    y: str | tuple[str, ...] | None = Field(
        None, description="a metric, or several; null is the one that the task ranks by"
    )
    lines: tuple[str, ...] = Field(("model",), description="fields that set lines apart")
    panels: tuple[str, ...] = Field((), description="fields that set panels apart")
    log_x: bool = Field(False, description="x on a logarithmic scale")
    log_y: bool | None = Field(
        None, description="y on a logarithmic scale; null: as the task's metric is ranked"
    )
    maps: str | None = Field(
        None, description="a metric whose analyses hold maps: a row of them for each line"
    )
    title: str = ""

    @model_validator(mode="after")
    def _fields_exist(self) -> Figure:
        if (self.x is None) == (self.maps is None):
            raise ValueError("a figure needs x or maps, and not both")
        own = () if self.x is None or self.x in ALONG else (self.x,)
        for name in (*self.lines, *self.panels, *own):
            group, _, key = name.partition(".")
            if group not in ResolvedSpec.model_fields:
                known = [*ALONG, *ResolvedSpec.model_fields]
                raise ValueError(str(unknown("field", group, known)))
            if key and not group.endswith("_args"):
                raise ValueError(f"{group} has no parts")
        return self


def draw(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """The figure of these records; raises UsageError for a field or metric that none has."""
    if not records:
        raise UsageError("a figure needs records")
    if figure.maps is not None:
        rows = [(_label(figure.lines, record), record) for record in records]
        return draw_maps(figure.maps, rows, figure.title)
    return _draw_lines(figure, records)


def _draw_lines(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """A panel for each metric, downwards, and for each value of `panels`, sideways."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    metrics = _metrics(figure)
    columns = _grouped(figure.panels, records)
    names = list(_grouped(figure.lines, records))
    colors = dict(zip(names, _colors(len(names)), strict=True))
    found = make_subplots(
        len(metrics),
        len(columns),
        column_titles=list(columns) if figure.panels else None,
        shared_xaxes=len(metrics) > 1,
        shared_yaxes=len(columns) > 1,
        vertical_spacing=0.15 / len(metrics),
        horizontal_spacing=0.1 / len(columns),
    )
    shown: set[str] = set()
    for row, name in enumerate(metrics, start=1):
        for column, members in enumerate(columns.values(), start=1):
            for label, group in _grouped(figure.lines, members).items():
                for line in _lines(figure, name, label, group):
                    # A line stands once in the legend, which switches it in every panel.
                    again = {"showlegend": False} if line["name"] in shown else {}
                    shown.add(line["name"])
                    style = {"line": {"color": colors[label]}, "legendgroup": line["name"]}
                    found.add_trace(go.Scatter(**{**style, **line, **again}), row=row, col=column)
        found.update_yaxes(**_y_axis(figure, records[0]), row=row)
        found.update_yaxes(title=_y_title(figure, name, records[0]), row=row, col=1)
    found.update_xaxes(title=_axis_title(figure, metrics[0], records[0]), row=len(metrics))
    if figure.log_x:
        found.update_xaxes(type="log")
    about = f"<br><sub>{BARS}</sub>" if figure.x not in ALONG else ""
    found.update_layout(title=figure.title + about, template="plotly_white")
    return found


def save(figure: Figure, records: Sequence[Record], path: Path) -> None:
    """Write the figure as a page; the script that shows it lies beside, once a folder."""
    import plotly.offline

    page = draw(figure, records).to_html(include_plotlyjs="directory")
    script = path.parent / "plotly.min.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not script.exists():
        write_atomically(script, plotly.offline.get_plotlyjs().encode())
    write_atomically(path, page.encode())


def _lines(
    figure: Figure, metric: str | None, label: str, members: list[Record]
) -> Iterable[dict[str, Any]]:
    if figure.x == "training":
        return _training_lines(label, members)
    along = _lines_along if figure.x == "curve" else _line_of_points
    return along(figure, metric, label, members)


def _line_of_points(
    figure: Figure, metric: str | None, label: str, members: list[Record]
) -> Iterable[dict[str, Any]]:
    """One line with a point a record, and the floor under it."""
    assert figure.x is not None
    x = figure.x
    rows = sorted(((_field(r, x), r) for r in members), key=lambda row: _order(row[0]))
    name = _metric(metric, rows[0][1])
    values = [_value(record, name) for _, record in rows]
    ranges = [_range(record, name) for _, record in rows]
    xs = [x for x, _ in rows]
    yield {
        "x": xs,
        "y": values,
        "name": label,
        # Between kernels or forms there is nothing.
        "mode": "lines+markers" if all(isinstance(v, int | float) for v in xs) else "markers",
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - v for (_, high), v in zip(ranges, values, strict=True)],
            "arrayminus": [v - low for (low, _), v in zip(ranges, values, strict=True)],
        },
    }
    statistic = rows[0][1].ranking.statistic
    floors = [getattr(r.floor[name], statistic) if name in r.floor else None for _, r in rows]
    yield {"x": xs, "y": floors, "name": f"{label}: floor", "mode": "lines",
           "line": {"dash": "dot", "color": "gray"}, "showlegend": False}  # fmt: skip


def _lines_along(
    figure: Figure, metric: str | None, label: str, members: list[Record]
) -> Iterable[dict[str, Any]]:
    """A line for each record: its curve over the second axis, and the floor's."""
    for record in members:
        name = _metric(metric, record)
        if name not in record.curves:
            raise UsageError(f"figure: {record.spec.model} has no curve of {name}")
        curve = record.curves[name]
        mode = "lines" if len(curve.values) > 1 else "markers"
        yield {"x": curve.values, "y": curve.median, "name": label, "mode": mode}
        if name in record.floor_curves:
            yield {"x": curve.values, "y": record.floor_curves[name].median, "mode": "lines",
                   "name": f"{label}: floor", "line": {"dash": "dot", "color": "gray"},
                   "showlegend": False}  # fmt: skip


def _training_lines(label: str, members: list[Record]) -> Iterable[dict[str, Any]]:
    """A line for each seed of each record that was trained."""
    for record in members:
        if record.training is None:
            continue
        for seed, row in zip(record.seeds, zip(*record.training.curve, strict=True), strict=True):
            yield {"x": record.training.curve_steps, "y": list(row), "mode": "lines",
                   "name": f"{label}, seed {seed.seed}"}  # fmt: skip


def _grouped(fields: tuple[str, ...], records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by what these fields say of them, in order of appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_label(fields, record), []).append(record)
    return groups


def _label(fields: tuple[str, ...], record: Record) -> str:
    parts = []
    for name in fields:
        value = _field(record, name)
        if value is None:
            continue
        parts.append(str(value) if name == "model" else f"{name.split('.')[-1]}={value}")
    return " ".join(parts)


def _field(record: Record, name: str) -> Any:
    """A field of the spec by its dotted name; None where this record has none."""
    group, _, key = name.partition(".")
    content = getattr(record.spec, group)
    return content.get(key) if key else content


def _metrics(figure: Figure) -> list[str | None]:
    """The metrics asked for; None is the one that the task ranks by."""
    if figure.x == "training" or figure.y is None:
        return [None]
    return [figure.y] if isinstance(figure.y, str) else list(figure.y)


def _metric(asked: str | None, record: Record) -> str:
    name = asked or record.ranking.metric
    if name not in record.metrics:
        raise UsageError(f"figure: {unknown('metric', name, list(record.metrics))}")
    return name


def _value(record: Record, name: str) -> float:
    found = getattr(record.metrics[name], record.ranking.statistic)
    return math.inf if found is None else float(found)


def _range(record: Record, name: str) -> tuple[float, float]:
    each = [getattr(seed.metrics[name], record.ranking.statistic) for seed in record.seeds]
    finite = [v for v in each if v is not None]
    return (min(finite), max(finite)) if finite else (math.inf, math.inf)


def _order(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return (not number, float(value) if number else 0.0, str(value))


def _axis_title(figure: Figure, metric: str | None, record: Record) -> str:
    if figure.x == "curve":
        return record.curves[_metric(metric, record)].axis
    return "step" if figure.x == "training" else str(figure.x).split(".")[-1]


def _y_title(figure: Figure, metric: str | None, record: Record) -> str:
    name = "training loss" if figure.x == "training" else _metric(metric, record)
    return f"{name} ({record.ranking.statistic})"


def _y_axis(figure: Figure, record: Record) -> dict[str, Any]:
    log = record.ranking.scale == "log" if figure.log_y is None else figure.log_y
    return {"type": "log" if log else "linear", "exponentformat": "power"}


def _colors(count: int) -> list[str]:
    import plotly.express.colors as palettes

    return [palettes.qualitative.D3[i % 10] for i in range(count)]
