"""Maps of a metric's analyses: their rows, columns, scales, and the points on top of them."""

from __future__ import annotations

import pytest

from iclbench import Metric, UsageError, run, sweep
from iclbench.leaderboards.figures.draw import draw
from iclbench.leaderboards.figures.maps import DOT
from iclbench.sweeps.figure import Figure


class Mapping(Metric):
    """Three maps: one with both signs, one with coordinates and points, one in its group."""

    name = "mapping"

    def supports(self, task):
        return None

    def compute(self, model, task, batch, context):
        return {}

    def analysis(self, model, task, batches, context):
        points = {"x": [0.5], "y": [0.5], "text": ["7"]}
        placed = {"values": [[0.0, 1.0]], "x": [0.0, 1.0], "y": [0.5], "points": points}
        return {"maps": [{"name": "signed", "values": [[1.0, -3.0], [0.5, None]]},
                         {"name": "placed", **placed, "group": "p"},
                         {"name": "beside", "values": [[2.0]], "group": "p"}]}  # fmt: skip


def test_maps_have_a_row_per_record_and_a_column_per_map(tmp_path, provide):
    provide("metric", "mapping", Mapping)
    grid = {"model": ["zero", "averaging"], "task": "least-squares", "metrics": ["mapping"]}
    records = sweep({"defaults": {"eval_prompts": 16}, "grid": [grid]}, out=tmp_path).records
    figure = draw(Figure(maps="mapping", title="A title"), records)
    heat = [t for t in figure.data if t.type == "heatmap"]
    assert [t.name for t in heat] == ["signed", "placed", "beside"] * 2
    signed, placed, beside = heat[:3]
    assert (signed.zmin, signed.zmax, signed.z[0][1]) == (-3.0, 3.0, -3.0)
    assert (placed.zmin, placed.zmax, beside.zmin, beside.zmax) == (0.0, 2.0, 0.0, 2.0)
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.yaxis2.autorange is None
    assert [t.text for t in figure.data if t.type == "scatter"] == [("7",)] * 2
    texts = [a.text for a in figure.layout.annotations]
    assert {"signed", "placed", "beside", "Zero", "Averaging"} == set(texts)
    with pytest.raises(UsageError, match="did you mean 'mapping'"):
        draw(Figure(maps="maping"), records)


def test_points_of_what_a_map_is_of_keep_their_labels_beside_a_scale(tmp_path, provide):
    class OfClasses(Mapping):
        name = "of-classes"

        def analysis(self, model, task, batches, context):
            points = {"x": [0.1, 0.9], "y": [0.5, 0.5], "text": ["7", "11"]}
            plane = {"values": [[0.0, 1.0]], "x": [0.0, 1.0], "y": [0.5], "points": points}
            return {"maps": [{"name": f"p(y = {c} | x)", **plane, "group": "p"} for c in (7, 11)]}

    provide("metric", "of-classes", OfClasses)
    record = run("zero", "least-squares", eval_prompts=8, metrics=("of-classes",), out=tmp_path)
    figure = draw(Figure(maps="of-classes"), [record])
    assert [t.text for t in figure.data if t.type == "scatter"] == [("7", DOT), (DOT, "11")]
    # One scale for the maps of one group; with several groups there is none.
    assert [t.showscale for t in figure.data if t.type == "heatmap"] == [True, False]


def test_texts_of_points_are_shown_and_nothing_else_of_them_is_taken(tmp_path, provide):
    class Marked(Metric):
        name = "marked"

        def supports(self, task):
            return None

        def analysis(self, model, task, batches, context):
            points = {"x": [0], "y": [0], "text": ["<a href='https://evil.example'>x</a>"],
                      "hovertemplate": "<b>", "mode": "lines"}  # fmt: skip
            return {"maps": [{"name": "one", "values": [[1.0]], "points": points},
                             {"values": [[1.0]]}, 3]}  # fmt: skip

    provide("metric", "marked", Marked)
    record = run("zero", "least-squares", task_args={"dim": 2, "examples": 4}, eval_prompts=8,
                 metrics=("marked",), out=tmp_path)  # fmt: skip
    figure = draw(Figure(maps="marked"), [record])
    (points,) = [trace for trace in figure.data if trace.type == "scatter"]
    assert (points.mode, points.hovertemplate) == ("markers+text", None)
    assert points.text == ("&lt;a href='https://evil.example'&gt;x&lt;/a&gt;",)
