"""Pages of figures, which share the script of Plotly that lies beside them."""

from __future__ import annotations

import plotly.graph_objects as go
import plotly.offline

from iclbench.leaderboards.figures.export import write_page


def test_the_script_beside_a_page_is_of_the_installed_plotly(tmp_path):
    script = tmp_path / "plotly.min.js"
    script.write_text("of an earlier version")
    write_page(go.Figure(), tmp_path / "page.html")
    assert script.read_text("utf-8") == plotly.offline.get_plotlyjs()
    written = script.stat().st_ino
    write_page(go.Figure(), tmp_path / "other.html")
    assert script.stat().st_ino == written


def test_the_same_figure_is_the_same_page(tmp_path):
    for name in ("one.html", "other.html"):
        write_page(go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()
