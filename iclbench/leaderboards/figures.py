"""Figures from records: an error against a field of the spec, or along a curve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from ..config import Config
from ..errors import UsageError, unknown
from ..files import write_atomically
from ..records import Record
from ..specs import ResolvedSpec

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: What x may be beside a field of the spec: a metric's second axis, or the steps of training.
ALONG = ("curve", "training")


class Figure(Config):
    """What a figure shows: one line for each value of `lines`, seeds' range as bars, the floor."""

    x: str = Field(
        description="a field such as model_args.layers; curve: the second axis of y; training"
    )
    y: str | None = Field(None, description="a metric; null is the one that the task ranks by")
    lines: tuple[str, ...] = Field(("model",), description="fields that set lines apart")
    title: str = ""

    @model_validator(mode="after")
    def _fields_exist(self) -> Figure:
        for name in (*self.lines, *(() if self.x in ALONG else (self.x,))):
            group, _, key = name.partition(".")
            if group not in ResolvedSpec.model_fields:
                known = [*ALONG, *ResolvedSpec.model_fields]
                raise ValueError(str(unknown("field", group, known)))
            if key and not group.endswith("_args"):
                raise ValueError(f"{group} has no parts")
        return self


def draw(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """The figure of these records; raises UsageError for a field or metric that none has."""
    import plotly.graph_objects as go

    if not records:
        raise UsageError("a figure needs records")
    found = go.Figure()
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_label(figure, record), []).append(record)
    for color, (label, members) in zip(_colors(len(groups)), groups.items(), strict=True):
        draw_lines = _lines_along if figure.x in ALONG else _line_of_points
        for line in draw_lines(figure, label, members):
            found.add_trace(go.Scatter(**{"line": {"color": color}, **line}))
    y = "training loss" if figure.x == "training" else _metric(figure, records[0])
    scale = "log" if records[0].ranking.scale == "log" else "linear"
    about = "; bars are the range over seeds" if figure.x not in ALONG else ""
    found.update_layout(
        title=figure.title,
        xaxis_title=_axis_title(figure, records[0]),
        yaxis={"title": f"{y} ({records[0].ranking.statistic}{about})", "type": scale,
               "exponentformat": "power"},
        template="plotly_white",
    )  # fmt: skip
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


def _line_of_points(
    figure: Figure, label: str, members: Iterable[Record]
) -> Iterable[dict[str, Any]]:
    """One line with a point a record, and the floor under it."""
    rows = sorted(((_field(r, figure.x), r) for r in members), key=lambda row: _order(row[0]))
    name = _metric(figure, rows[0][1])
    values = [_value(record, name) for _, record in rows]
    ranges = [_range(record, name) for _, record in rows]
    xs = [x for x, _ in rows]
    yield {
        "x": xs,
        "y": values,
        "name": label,
        "mode": "lines+markers",
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


def _lines_along(figure: Figure, label: str, members: Iterable[Record]) -> Iterable[dict[str, Any]]:
    """A line for each record: its curve over the second axis, or its training curve."""
    for record in members:
        if figure.x == "training":
            if record.training is None:
                continue
            for seed, row in zip(record.seeds, zip(*record.training.curve, strict=True),
                                 strict=True):  # fmt: skip
                yield {"x": record.training.curve_steps, "y": list(row), "mode": "lines",
                       "name": f"{label}, seed {seed.seed}"}  # fmt: skip
            continue
        name = _metric(figure, record)
        if name not in record.curves:
            raise UsageError(f"figure: {record.spec.model} has no curve of {name}")
        curve = record.curves[name]
        mode = "lines" if len(curve.values) > 1 else "markers"
        yield {"x": curve.values, "y": curve.median, "name": label, "mode": mode}
        if name in record.floor_curves:
            yield {"x": curve.values, "y": record.floor_curves[name].median, "mode": "lines",
                   "name": f"{label}: floor", "line": {"dash": "dot", "color": "gray"},
                   "showlegend": False}  # fmt: skip


def _label(figure: Figure, record: Record) -> str:
    parts = []
    for name in figure.lines:
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


def _metric(figure: Figure, record: Record) -> str:
    name = figure.y or record.ranking.metric
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


def _axis_title(figure: Figure, record: Record) -> str:
    if figure.x == "curve":
        return record.curves[_metric(figure, record)].axis
    return "step" if figure.x == "training" else figure.x.split(".")[-1]


def _colors(count: int) -> list[str]:
    import plotly.express.colors as palettes

    return [palettes.qualitative.D3[i % 10] for i in range(count)]
