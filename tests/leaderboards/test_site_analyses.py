"""The site's pages of further metrics: what explains them, and their plots."""

from __future__ import annotations

import re

import pytest
from rich_records import ANALYSIS

from iclbench import run
from iclbench.leaderboards.site import analyses, heat
from iclbench.leaderboards.site.build import make_site
from iclbench.leaderboards.site.metrics import metric_about


def test_a_metric_s_documentation_is_paragraphs_and_lists():
    view = metric_about("alignment")
    assert view["title"].startswith("The number of gradient-descent steps")
    (items,) = [block["items"] for block in view["blocks"] if block["items"]]
    assert items[0].startswith("`alignment_distance`: ")
    assert metric_about("nobody-s") == {"title": "nobody-s", "blocks": []}


def test_curves_of_several_records_are_drawn_in_one_plot(tmp_path):
    models = {
        "gradient-descent": "Gradient descent",
        "least-squares-cholesky": "Cholesky LS",
    }
    for model in models:
        run(
            model=model,
            task="least-squares",
            task_args={"dim": 2, "examples": 3},
            metrics=["alignment"],
            eval_prompts=8,
            device="cpu",
            out=tmp_path / "records",
        )
    make_site(tmp_path / "site", tmp_path, pytest.fail)
    page = (tmp_path / "site" / "analyses" / "alignment.html").read_text("utf-8")
    assert "<code>alignment_distance</code>: squared difference" in page
    assert "Each line is a record." in page
    overview, *blocks = page.split('<details class="card">')
    assert overview.count("<figure") == 1
    assert [block.count("<figure") for block in blocks] == [1, 1]
    for title in models.values():
        assert f"</svg>{title}</button>" in overview
    assert ">floor</th>" not in page


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("layers.*.error", [1.0, 0.5]),
        ("layers.0.misfit", [1.0, 0.1, 0.01]),
        ("layers.7.misfit", None),
        ("layers.-1.misfit", None),
        (f"layers.{'9' * 5000}.misfit", None),
        ("maps", None),
        (3, None),
    ],
)
def test_a_path_leads_to_numbers_or_nowhere(path, expected):
    assert analyses._at(ANALYSIS, path) == expected


def test_a_plane_of_points_has_lines_at_0_where_they_lie_inside():
    points = {"x": [0.0], "y": [1.0], "text": ["a"]}
    plane = {"name": "p", "values": [[0.0] * 3] * 2, "x": [-1, 0, 1], "y": [1, 2]}
    (view,) = heat.draw_maps([plane | {"points": points}])
    assert re.findall(r'<i class="zero (\w)" style="(\w+):([\d.]+)%">', view["svg"]) == [
        ("x", "left", "50.0")]  # fmt: skip


def test_labels_of_points_are_inside_and_only_those_of_the_map_s_own_class():
    points = {"x": [1.0, -1.0, 0.0], "y": [2.0, 1.0, 1.5], "text": ["1", "11", "1"]}
    plane = {"name": "p(y = 1 | x)", "values": [[0.0] * 3] * 2, "x": [-1, 0, 1], "y": [1, 2]}
    (view,) = heat.draw_maps([plane | {"points": points}])
    shown = re.findall(r'<b class="point" style="([^"]+)" title="(\d+)">([^<]+)</b>', view["svg"])
    assert [(title, text) for _, title, text in shown] == [("1", "1"), ("11", "•"), ("1", "1")]
    assert all(style.count("clamp(") == 2 for style, _, _ in shown)
    # The outer edges of the first and last cells are written beside the plane.
    sides = re.findall(r'<i class="side (\w) (\w+)">([^<]+)<', view["svg"])
    assert sides == [("x", "first", "−1.5"), ("x", "last", "1.5"),
                     ("y", "first", "0.5"), ("y", "last", "2.5")]  # fmt: skip
    assert view["has_axes"]
    # Without a class in its name, a map has all labels.
    (view,) = heat.draw_maps([plane | {"name": "p", "points": points}])
    assert re.findall(r'title="\d+">([^<]+)</b>', view["svg"]) == ["1", "11", "1"]
    (plain,) = heat.draw_maps([{"name": "m", "values": [[1.0]]}])
    assert not plain["has_axes"]
