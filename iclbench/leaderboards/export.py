"""Figures as files: pages, and images through kaleido."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import UsageError
from ..api.record import Record
from ..files import write_atomically
from .figures import Figure, draw

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORMATS = ("html", "svg", "pdf", "png")
#: Characters in a line of the caption, and the height of a line in pixels.
LINE, LINE_HEIGHT = 110, 18


def export(figure: Figure, records: Sequence[Record], path: Path, kind: str, caption: str) -> None:
    """Write the figure with its caption under it, in one of FORMATS.

    Raises UsageError where kaleido, or the browser that it draws with, is missing.
    """
    drawn = with_caption(draw(figure, records), caption)
    write_atomically(path, _page(drawn, path) if kind == "html" else _image(drawn, kind))


def with_caption(drawn: go.Figure, caption: str) -> go.Figure:
    """The figure with room for its caption below."""
    lines = textwrap.wrap(caption, LINE)
    height = (drawn.layout.height or 500) + LINE_HEIGHT * len(lines)
    bottom = (drawn.layout.margin.b or 80) + LINE_HEIGHT * len(lines)
    drawn.update_layout(height=height, width=drawn.layout.width or 900, margin_b=bottom)
    drawn.add_annotation(
        text="<br>".join(lines), showarrow=False, align="left", font={"size": 12},
        xref="paper", yref="paper", x=0, xanchor="left", y=0, yanchor="top", yshift=-60,
    )  # fmt: skip
    return drawn


def _page(drawn: go.Figure, path: Path) -> bytes:
    """A page; the script that shows it lies beside, once a folder."""
    import plotly.offline

    script = path.parent / "plotly.min.js"
    if not script.exists():
        write_atomically(script, plotly.offline.get_plotlyjs().encode())
    return str(drawn.to_html(include_plotlyjs="directory")).encode()


def _image(drawn: go.Figure, kind: str) -> bytes:
    try:
        import kaleido  # noqa: F401
    except ImportError:
        raise UsageError(
            f"{kind} needs kaleido: pip install 'iclbench[figures]'; --format html needs nothing"
        ) from None
    # What goes wrong is the browser's: none is found, or it can't be started.
    try:
        found: Any = drawn.to_image(format=kind)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{kind} needs Chrome or Chromium, which kaleido could not use: {reason}; "
            "--format html needs nothing"
        ) from None
    return bytes(found)
