"""Draw a `Figure` with Plotly: metrics against a field of the spec or along a curve, or maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...api.errors import UsageError
from ...api.record import Record
from ...console import report
from ...sweeps.figure import CURVE, NOT_FIELDS, TRAINING, Figure
from .. import escaping
from ..descriptions import Descriptions
from ..formats import in_words
from .distinct import with_distinct_lines
from .line import Line
from .maps import draw_maps
from .panels import Panel, panels
from .references import is_numeric, with_references
from .wording import floor_name, floor_names, labels_in_words, worded

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: The lines of floors, and of models without the argument that the x axis varies.
FLOOR_COLORS = ("gray", "black")
FLOOR_LINE, REFERENCE_LINE = {"dash": "dot"}, {"dash": "dash"}
#: Pixels of a figure without its panels, of a row of panels, and of one with an axis of its own.
FRAME, ROW, COLUMN = 200, 300, 320
#: The width of a page, of a panel at least and at most, and of a character.
PAGE, NARROWEST, WIDEST, CHARACTER = 900, 150, 450, 7
#: Dashes and marks of groups of lines, so that color alone tells none apart, and of coinciding ones
#: both are seen.
DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star")
#: An axis with at most so many different numbers has a tick at each.
MOST_TICKS = 10


class Style(NamedTuple):
    """The color, the dashes and the symbol of a group of lines, and the color of its floor."""

    color: str
    dash: str
    symbol: str
    floor: str = FLOOR_COLORS[0]


def draw(figure: Figure, records: Sequence[Record]) -> go.Figure:
    """Draw the figure of these records; raises UsageError for an unknown metric or analysis."""
    about = Descriptions(report)
    title = escaping.plotly(figure.title)
    if figure.maps is not None:
        if not records:
            raise UsageError("a figure needs records")
        labels = labels_in_words(figure.lines, records, about)
        rows = [(escaping.plotly(x), r) for x, r in zip(labels, records, strict=True)]
        return draw_maps(figure.maps, rows, title)
    return _draw_panels(figure, records, title, about)


def _draw_panels(
    figure: Figure, records: Sequence[Record], title: str, about: Descriptions
) -> go.Figure:
    """One row of panels per metric, one column per value of `panels`."""
    from plotly.subplots import make_subplots

    figure = with_distinct_lines(figure, records)
    rows = [
        [replace(panel, lines=with_references(panel.lines)) for panel in row]
        for row in worded(panels(figure, records), figure, records, about)
    ]
    columns = [panel.column for panel in rows[0]]
    groups = list(dict.fromkeys(x.group for row in rows for panel in row for x in panel.lines))
    # Dashed lines are those of reference, where there are any.
    has_dashes = not any(x.reference for row in rows for panel in row for x in panel.lines)
    styles = dict(zip(groups, _styles(len(groups), has_dashes=has_dashes), strict=True))
    floors = floor_names(figure, records, rows, _floor_label(records))
    shades = dict(zip(dict.fromkeys(floors.values()), FLOOR_COLORS, strict=False))
    # Panels side by side share an axis where they show the same.
    shares = all(len({(panel.y_title, panel.log_y) for panel in row}) == 1 for row in rows)
    gap = 0.1 if shares else 0.3
    drawing = make_subplots(
        len(rows),
        len(columns),
        column_titles=[escaping.plotly(c) for c in columns] if any(columns) else None,
        shared_xaxes=len(rows) > 1,
        shared_yaxes=len(columns) > 1 and shares,
        vertical_spacing=0.15 / len(rows),
        horizontal_spacing=gap / len(columns),
    )
    in_legend: set[str] = set()
    for row, members in enumerate(rows, start=1):
        for column, panel in enumerate(members, start=1):
            for line in panel.lines:
                named = replace(line, name=floors[line.group]) if line.floor else line
                style = styles[line.group]._replace(floor=shades.get(named.name, FLOOR_COLORS[0]))
                trace = _trace(named, style, repeated=named.name in in_legend)
                in_legend.add(named.name)
                drawing.add_trace(trace, row=row, col=column)
            kind = "log" if panel.log_y else "linear"
            name = escaping.plotly(in_words(panel.y_title)) if column == 1 or not shares else None
            drawing.update_yaxes(type=kind, exponentformat="power", title=name, row=row, col=column)
    drawing.update_xaxes(title=escaping.plotly(rows[0][0].x_title), row=len(rows))
    for column in range(len(columns)):
        ticks = _ticks([line for row in rows for line in row[column].lines])
        drawing.update_xaxes(ticks, type="log" if rows[0][0].log_x else None, col=column + 1)
    explained = "; ".join(_explanations(figure, rows))
    drawing.update_layout(
        title=title + (f"<br><sub>{escaping.plotly(explained)}</sub>" if explained else ""),
        template="plotly_white",
        height=FRAME + ROW * len(rows),
        width=_width(rows[0], shares=shares),
        margin={"t": 120, "b": 80 + max(_label_widths(panel)[1] for panel in rows[0]) // 2},
    )
    # Plotly writes the titles of columns as annotations.
    drawing.update_annotations(font_size=13)
    return drawing


def _floor_label(records: Sequence[Record]) -> str:
    """What the floors are called: a target is not a floor, as models can pass it."""
    label = floor_name(records)
    return label if label in {"floor", "target"} else f"{label} (floor)"


def _width(row: Sequence[Panel], *, shares: bool) -> int | None:
    """The pixels that panels side by side and the legend need; None if any page has them."""
    legend = max(CHARACTER * len(line.name) for panel in row for line in panel.lines)
    least = COLUMN if not shares else max(NARROWEST, WIDEST // len(row))
    panels = sum(max(least, min(_label_widths(panel)[0], WIDEST)) for panel in row)
    width = FRAME + legend + panels
    return None if shares and width <= PAGE else max(PAGE, width)


def _label_widths(panel: Panel) -> tuple[int, int]:
    """The pixels of all categories beside each other, and those of the longest; 0 for numbers."""
    values = dict.fromkeys(x for line in panel.lines for x in line.x if x is not None)
    if is_numeric([*values]):
        return 0, 0
    widths = [CHARACTER * len(str(x)) for x in values]
    return sum(widths) + 16 * len(widths), max(widths)


def _explanations(figure: Figure, rows: Sequence[Sequence[Panel]]) -> Iterator[str]:
    """What bars, dashes, colors and digits mean, where the figure has them."""
    lines = [line for row in rows for panel in row for line in panel.lines]
    if figure.x == TRAINING:
        yield "one line per seed; the seeds of a model have one color"
    if figure.x == CURVE and any(line.above is not None for line in lines):
        yield "bars are the intervals of means"
    if figure.x not in {TRAINING, CURVE}:
        yield "bars are the range over seeds"
    if figure.x in NOT_FIELDS:
        return
    if any(line.reference for line in lines):
        yield f"dashed: models without {rows[0][0].x_title}"
    if any(panel.in_digits for row in rows for panel in row):
        yield "digits are −log₁₀ of the absolute error"


def _ticks(lines: Sequence[Line]) -> dict[str, Any]:
    """Ticks at the values of the x axis, where they are few numbers; Plotly's own otherwise.

    Categories are in the order of the lines, whichever a line of reference begins with.
    """
    values = dict.fromkeys(x for line in lines if not line.reference for x in line.x)
    if values and not is_numeric([*values]):
        return {"categoryorder": "array", "categoryarray": [x for x in values if x is not None]}
    if len(values) > MOST_TICKS:
        return {}
    return {"tickvals": sorted(values), "ticktext": [f"{x:,g}" for x in sorted(values)]}


def _trace(line: Line, style: Style, *, repeated: bool) -> go.Scatter:
    """A line as Plotly draws it."""
    import plotly.graph_objects as go

    name = escaping.plotly(line.name)
    dashes = REFERENCE_LINE if line.reference else {"dash": style.dash}
    trace: dict[str, Any] = {
        "x": line.x,
        "y": line.y,
        "name": name,
        "mode": line.mode,
        "line": {"color": style.floor, **FLOOR_LINE}
        if line.floor
        else {"color": style.color, **dashes},
        "marker": {"symbol": style.symbol, "size": 7}
        if not line.floor
        else {"symbol": "line-ew-open", "size": 14, "color": style.floor},
        # The legend shows a name once; clicking it switches the line in every panel.
        "legendgroup": name,
    }
    if line.floor:
        trace["legendrank"] = 2000  # after the models
    if repeated:
        trace["showlegend"] = False
    if line.above is not None:
        thin = {"thickness": 0.5, "width": 0} if line.dense else {}
        trace["error_y"] = {"type": "data", "symmetric": False, "array": line.above,
                            "arrayminus": line.below, **thin}  # fmt: skip
    return go.Scatter(**trace)


def _styles(count: int, *, has_dashes: bool) -> list[Style]:
    import plotly.express.colors as palettes

    known = palettes.qualitative.D3 if count <= 10 else palettes.qualitative.Dark24
    dashes = DASHES if has_dashes else DASHES[:1]
    return [
        Style(known[i % len(known)], dashes[i % len(dashes)], SYMBOLS[i % len(SYMBOLS)])
        for i in range(count)
    ]
