"""Write figures to files: pages, and images through kaleido."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api.errors import UsageError
from ...files import write_output
from .. import escaping

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORMATS = ("html", "svg", "pdf", "png")
#: The width of a figure that asks for none, of a caption's character, and the height of its lines.
WIDTH, CHARACTER, LINE_HEIGHT = 900, 8, 18


def write_figure(drawing: go.Figure, path: Path, kind: str, caption: str) -> None:
    """Write a drawing with its caption below it, in one of FORMATS.

    Raises UsageError if kaleido, or the browser that it draws with, is missing.
    """
    drawing = with_caption(drawing, caption)
    if kind == "html":
        write_page(drawing, path)
    else:
        write_output(path, _image(drawing, kind))


def write_page(drawing: go.Figure, path: Path) -> None:
    """Write a page that needs no network: Plotly's script lies beside it, once per folder."""
    import plotly.offline

    script = path.parent / "plotly.min.js"
    content = plotly.offline.get_plotlyjs().encode()
    # The script of another version of Plotly may not draw this page.
    if not script.is_file() or script.read_bytes() != content:
        write_output(script, content)
    # Without an identifier of its own, Plotly draws one at random: the same figure, another file.
    page = drawing.to_html(include_plotlyjs="directory", div_id="figure")
    write_output(path, str(page).encode())


def with_caption(drawing: go.Figure, caption: str) -> go.Figure:
    """Add the caption, and room for it, below the drawing; changes and returns `drawing`."""
    width = drawing.layout.width or WIDTH
    lines = [escaping.plotly(line) for line in textwrap.wrap(caption, width // CHARACTER)]
    height = (drawing.layout.height or 500) + LINE_HEIGHT * len(lines)
    bottom = (drawing.layout.margin.b or 80) + LINE_HEIGHT * len(lines)
    drawing.update_layout(height=height, width=width, margin_b=bottom)
    drawing.add_annotation(
        text="<br>".join(lines), showarrow=False, align="left", font={"size": 12},
        xref="paper", yref="paper", x=0, xanchor="left", y=0, yanchor="bottom", yshift=10 - bottom,
    )  # fmt: skip
    return drawing


def _image(drawing: go.Figure, kind: str) -> bytes:
    try:
        import kaleido  # noqa: F401
    except ImportError:
        raise UsageError(
            f"{kind} needs kaleido: pip install 'iclbench[figures]'; --format html needs nothing"
        ) from None
    # kaleido raises many types, mostly because no browser was found or started.
    try:
        image: Any = drawing.to_image(format=kind)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(
            f"{kind} needs Chrome or Chromium, which kaleido could not use: {reason}; "
            "--format html needs nothing"
        ) from None
    return bytes(image)
