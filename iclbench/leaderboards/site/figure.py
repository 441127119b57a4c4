"""A figure as its template shows it: the drawing, the legend, and the data for exploring it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ...api.names import without_nonfinite
from . import svg
from .plots import Plot

#: What a template shows: a dictionary of text, numbers and further views.
View = dict[str, Any]


def figure(plot: Plot) -> View:
    """The view of a plot."""
    legend = [
        {"name": line["name"], "style": svg.style_of(line), "key": svg.key(line)}
        for line in plot["lines"]
    ]
    return {
        "title": plot["title"],
        "wide": plot["wide"],
        "svg": svg.draw(plot),
        # A phone has no room for names at the ends of lines.
        "narrow": svg.draw(plot, narrow=True) if plot["wide"] else "",
        "y": plot["y"],
        "legend": legend,
        "note": plot["note"],
        "data": script_json(without_nonfinite(plot)),
    }


def figures(plots: Iterable[Plot]) -> list[View]:
    """The views of the plots that have a line beside lines of reference."""
    return [
        figure(plot) for plot in plots if any(not line.get("reference") for line in plot["lines"])
    ]


def script_json(content: Any) -> str:
    """JSON that is safe inside a page's script element."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
