"""Draw a `Figure` with Plotly: metrics against a field of the spec or along a curve, or maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...api.errors import UsageError, unknown
from ...api.record import MAIN, Record
from ...api.statistics import finite
from ...sweeps.figure import COSTS, CURVE, NOT_FIELDS, STATE, TRAINING, Figure
from .. import escaping
from ..curves import COST_TITLES, median_curve, seed_scores
from ..row import has_digits, shown_name, shown_score
from .maps import draw_maps

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: One line of a panel, as keyword arguments of `go.Scatter`.
Trace = dict[str, Any]

FLOOR_LINE = {"dash": "dot", "color": "gray"}


def draw(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """Draw the figure of these records; raises UsageError for an unknown metric or analysis."""
    figure = figure.model_copy(update={"title": escaping.plotly(figure.title)})
    if not records:
        raise UsageError("a figure needs records")
    if figure.x in COSTS and not any(record.validation_curve for record in records):
        raise UsageError(f"a figure against {figure.x} needs records of trainings with validation")
    if figure.maps is not None:
        rows = [(_label(figure.lines, record), record) for record in records]
        return draw_maps(figure.maps, rows, figure.title)
    return _draw_lines(figure, records)


def _draw_lines(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """One row of panels per metric, one column per value of `panels`."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    if figure.x == STATE:
        records = [record for record in records if record.state_bytes is not None]
        if not records:
            raise UsageError("figure: no record tells the size of its model's state")
    metrics = _metrics(figure)
    columns = _columns(figure, records)
    names = list(_grouped(figure.lines, records))
    colors = dict(zip(names, _colors(len(names)), strict=True))
    drawing = make_subplots(
        len(metrics),
        len(columns),
        column_titles=list(columns) if figure.panels or figure.shifts else None,
        shared_xaxes=len(metrics) > 1,
        shared_yaxes=len(columns) > 1,
        vertical_spacing=0.15 / len(metrics),
        horizontal_spacing=0.1 / len(columns),
    )
    in_legend: set[str] = set()
    for row, name in enumerate(metrics, start=1):
        for column, members in enumerate(columns.values(), start=1):
            for label, group in _grouped(figure.lines, members).items():
                for trace in _traces(figure, name, label, group):
                    # The legend shows a name once; clicking it switches the line in every panel.
                    repeated = {"showlegend": False} if trace["name"] in in_legend else {}
                    in_legend.add(trace["name"])
                    style = {"line": {"color": colors[label]}, "legendgroup": trace["name"]}
                    scatter = go.Scatter(**{**style, **trace, **repeated})
                    drawing.add_trace(scatter, row=row, col=column)
            if figure.x == STATE:
                floor = _floor_over_states(_metric(name, members[0]), members)
                repeated = {} if floor["name"] not in in_legend else {"showlegend": False}
                in_legend.add(floor["name"])
                drawing.add_trace(go.Scatter(**floor, **repeated), row=row, col=column)
        drawing.update_yaxes(**_y_axis(figure, name, records[0]), row=row)
        drawing.update_yaxes(title=_y_title(figure, name, records[0]), row=row, col=1)
    drawing.update_xaxes(title=_x_title(figure, metrics[0], records[0]), row=len(metrics))
    if figure.log_x or (figure.log_x is None and figure.x in {STATE, *COSTS}):
        drawing.update_xaxes(type="log")
    about = ""
    if figure.x not in NOT_FIELDS:
        explained = "; digits are −log₁₀ of the absolute error" * has_digits(records[0].ranking)
        about = f"<br><sub>bars are the range over seeds{explained}</sub>"
    drawing.update_layout(title=figure.title + about, template="plotly_white")
    return drawing


def _traces(
    figure: Figure, metric: str | None, label: str, records: list[Record]
) -> Iterable[Trace]:
    if figure.x == TRAINING:
        return _training_curves(label, records)
    if figure.x in COSTS:
        return _validation_curves(figure.x, label, records)
    if figure.x == CURVE:
        return _curves(metric, label, records)
    return _points(str(figure.x), metric, label, records)


def _points(x: str, metric: str | None, label: str, records: list[Record]) -> Iterable[Trace]:
    """One line with a point per record, and the floor below it."""
    points = sorted(((_field(r, x), r) for r in records), key=lambda point: _order(point[0]))
    xs = [value for value, _ in points]
    name = _metric(metric, points[0][1])
    values = [_value(record, name) for _, record in points]
    ranges = [_range_over_seeds(record, name) for _, record in points]
    yield {
        "x": xs,
        "y": values,
        "name": label,
        # A line between categories would suggest values in between.
        "mode": "lines+markers" if all(isinstance(v, int | float) for v in xs) else "markers",
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [high - v for (_, high), v in zip(ranges, values, strict=True)],
            "arrayminus": [v - low for (low, _), v in zip(ranges, values, strict=True)],
        },
    }
    if x == STATE:
        return
    floors = [shown_score(r.floor[name], r.ranking) if name in r.floor else None for _, r in points]
    yield {"x": xs, "y": floors, "name": f"{label}: floor", "mode": "lines", "line": FLOOR_LINE,
           "showlegend": False}  # fmt: skip


def _floor_over_states(metric: str, records: list[Record]) -> Trace:
    """The floor from the smallest state to the largest, the same for all models of a board."""
    states = [record.state_bytes for record in records if record.state_bytes is not None]
    floor = records[0].floor.get(metric)
    score = None if floor is None else shown_score(floor, records[0].ranking)
    return {"x": [min(states), max(states)], "y": [score, score], "name": "floor",
            "mode": "lines", "line": FLOOR_LINE}  # fmt: skip


def _curves(metric: str | None, label: str, records: list[Record]) -> Iterable[Trace]:
    """One line per record along the second axis of the metric, and the floor's."""
    for record in records:
        name = _metric(metric, record)
        if name not in record.curves:
            raise UsageError(f"figure: {record.spec.model} has no curve of {name}")
        curve = record.curves[name]
        mode = "lines" if len(curve.values) > 1 else "markers"
        yield {"x": curve.values, "y": curve.median, "name": label, "mode": mode}
        if name in record.main.floor.curves:
            yield {"x": curve.values, "y": record.main.floor.curves[name].median, "mode": "lines",
                   "name": f"{label}: floor", "line": FLOOR_LINE, "showlegend": False}  # fmt: skip


def _training_curves(label: str, records: list[Record]) -> Iterable[Trace]:
    """One line per seed of each trained record."""
    for record in records:
        if record.training is None:
            continue
        by_seed = zip(*record.training.curve, strict=True)
        for seed, losses in zip(record.seeds, by_seed, strict=True):
            yield {"x": record.training.curve_steps, "y": list(losses), "mode": "lines",
                   "name": f"{label}, seed {seed.seed}"}  # fmt: skip


def _validation_curves(x: str, label: str, records: list[Record]) -> Iterable[Trace]:
    """One line per record: the median over seeds at each point, with their range as bars."""
    for record in records:
        curve = record.validation_curve
        if curve is None:
            continue
        scores = seed_scores(curve)
        middle = np.median(scores, axis=0)
        with np.errstate(invalid="ignore"):
            above, below = scores.max(axis=0) - middle, middle - scores.min(axis=0)
        yield {
            "x": getattr(curve, x),
            "y": median_curve(curve),
            "name": label,
            "mode": "lines+markers",
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [finite(value) for value in above],
                "arrayminus": [finite(value) for value in below],
                "thickness": 0.5,
                "width": 0,
            },
        }


def _columns(figure: Figure, records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each panel side by side, with the evaluation it shows as their main one."""
    if not figure.shifts:
        return _grouped(figure.panels, records)
    columns = {name: [_under(r, name) for r in records if name in r.evaluations]
               for name in figure.shifts}  # fmt: skip
    for name, members in columns.items():
        if not members:
            raise UsageError(f"figure: no record has an evaluation under the shift {name}")
    return {escaping.plotly(name): members for name, members in columns.items()}


def _under(record: Record, shift: str) -> Record:
    return record.model_copy(update={"evaluations": {MAIN: record.evaluations[shift]}})


def _grouped(fields: tuple[str, ...], records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by their values of these fields, in order of appearance."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(_label(fields, record), []).append(record)
    return groups


def _label(fields: tuple[str, ...], record: Record) -> str:
    parts = []
    for name in fields:
        value = _field(record, name)
        if value is not None:
            parts.append(str(value) if name == "model" else f"{name.split('.')[-1]}={value}")
    return escaping.plotly(" ".join(parts))


def _field(record: Record, name: str) -> Any:
    """The value of a spec's field, by its dotted name, or the state; None if there is none."""
    if name == STATE:
        return record.state_bytes
    group, _, key = name.partition(".")
    content = getattr(record.spec, group)
    return content.get(key) if key else content


def _metrics(figure: Figure) -> list[str | None]:
    """The metrics of the figure, one row of panels each; None is the one the task ranks by."""
    if figure.x in {TRAINING, *COSTS} or figure.y is None:
        return [None]
    return [figure.y] if isinstance(figure.y, str) else list(figure.y)


def _metric(wanted: str | None, record: Record) -> str:
    name = wanted or record.ranking.metric
    if name not in record.metrics:
        raise UsageError(f"figure: {unknown('metric', name, list(record.metrics))}")
    return name


def _value(record: Record, name: str) -> float:
    value = shown_score(record.metrics[name], record.ranking)
    return math.nan if value is None else value


def _range_over_seeds(record: Record, name: str) -> tuple[float, float]:
    values = [shown_score(seed[name], record.ranking) for seed in record.main.seeds]
    finite = [v for v in values if v is not None]
    return (min(finite), max(finite)) if finite else (math.nan, math.nan)


def _order(value: Any) -> tuple[bool, float, str]:
    """A sort key: numbers first, by size, then everything else as text."""
    is_number = isinstance(value, int | float)
    return (not is_number, float(value) if is_number else 0.0, str(value))


def _x_title(figure: Figure, metric: str | None, record: Record) -> str:
    if figure.x == CURVE:
        return escaping.plotly(record.curves[_metric(metric, record)].axis)
    if figure.x == STATE:
        return "state after a prompt, bytes a layer"
    if figure.x in COSTS:
        return COST_TITLES[str(figure.x)]
    return "step" if figure.x == TRAINING else str(figure.x).split(".")[-1]


def _y_title(figure: Figure, metric: str | None, record: Record) -> str:
    if figure.x == TRAINING:
        return "training loss"
    if figure.x in COSTS:
        return f"validation: {record.ranking.statistic} of {record.ranking.metric}"
    name = _metric(metric, record)
    if figure.x == CURVE:
        return f"median {name}"
    return shown_name(name, record.metrics[name], record.ranking)


def _y_axis(figure: Figure, metric: str | None, record: Record) -> dict[str, Any]:
    """Digits are logarithms already; curves and losses of a task that ranks by them span many."""
    if figure.x in COSTS:
        is_log = bool(figure.log_y)
        return {"type": "log" if is_log else "linear", "exponentformat": "power"}
    is_log = has_digits(record.ranking) if figure.log_y is None else figure.log_y
    if figure.x not in NOT_FIELDS and has_digits(record.ranking):
        is_log = is_log and record.metrics[_metric(metric, record)].digits is None
    return {"type": "log" if is_log else "linear", "exponentformat": "power"}


def _colors(count: int) -> list[str]:
    import plotly.express.colors as palettes

    return [palettes.qualitative.D3[i % 10] for i in range(count)]
