"""Lines of a study's figure: one color in every panel, and floors that agree are one."""

from __future__ import annotations

from collections import Counter

import pytest

from iclbench import UsageError, run, sweep
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.figures import distinct
from iclbench.leaderboards.figures.distinct import with_distinct_lines
from iclbench.leaderboards.site.study_figure import _far_level, study_views
from iclbench.sweeps.figure import Figure


@pytest.mark.parametrize("x", ["task_args.examples", "model"])
def test_a_model_keeps_its_color_in_panels_that_lack_others(tmp_path, x):
    args = {"task_args": {"dim": 2, "examples": [4, 6]}, "eval_prompts": 8}
    grids = [
        {"model": ["zero", "least-squares-qr"], "task": "least-squares", **args},
        {"model": "least-squares-qr", "task": "least-squares-prefixes", **args},
    ]
    records = sweep({"grid": grids}, out=tmp_path).records
    whole, part = study_views(Figure(x=x, panels=("task",)), records, Descriptions(pytest.fail))
    if x == "model":  # dots over categories
        colors = [
            {dot["style"] for line in view["dots"]["lines"] for dot in line["dots"]
             if dot["name"] == "QR"}
            for view in (whole, part)
        ]  # fmt: skip
    else:
        colors = [
            {item["style"] for item in view["figure"]["legend"]
             if item["name"] == "QR"}
            for view in (whole, part)
        ]  # fmt: skip
    assert colors[0] == colors[1]
    assert len(colors[0]) == 1


def test_floors_that_agree_are_one_line(tmp_path):
    args = {"task": "least-squares", "eval_prompts": 8, "recipe": "smoke"}
    grids = [
        {"model": "baseconv", "model_args": {"layers": [1, 2]}, **args},
        {"model": "transformer", "model_args": {"layers": [2, 3]}, **args},
    ]
    records = sweep({"grid": grids}, out=tmp_path).records
    (view,) = study_views(Figure(x="model_args.layers"), records, Descriptions(pytest.fail))
    names = [item["name"] for item in view["figure"]["legend"]]
    assert names == ["BaseConv", "Transformer", "attainable"]


def test_curves_of_one_name_get_names_that_differ(tmp_path):
    args = {"task": "least-squares-prefixes", "task_args": {"dim": 2, "examples": 4},
            "model": "baseconv", "recipe": "smoke", "eval_prompts": 8}  # fmt: skip
    grids = [
        {**args, "model_args": {"layers": [1, 2]}},
        {**args, "model": "transformer", "model_args": {"layers": 1}},
    ]
    records = sweep({"grid": grids}, out=tmp_path).records
    described = Figure(x="curve", y="prefix_error")
    (view,) = study_views(described, records, Descriptions(pytest.fail))
    names = [item["name"] for item in view["figure"]["legend"]]
    assert names[:3] == ["BaseConv, 1 layer", "BaseConv, 2 layers", "Transformer, 1 layer"]
    assert with_distinct_lines(described, records).lines == ("model", "model_args.layers")
    assert with_distinct_lines(described, records[1:]) is described


@pytest.fixture
def copies(tmp_path):
    """Makes records that differ in these fields of their spec alone."""
    record = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)

    def made(fields):
        return [
            record.model_copy(update={"spec": record.spec.model_copy(update=one)}) for one in fields
        ]

    return made


def test_a_field_of_a_record_is_labelled_once(copies, monkeypatch):
    fields = [{}, {"eval_seed": 1}, {"dtype": "float64"}, {"seeds": (7,)}]
    labelled = []

    def label_of(names, record):
        labelled.append(names)
        return original(names, record)

    original = distinct.label_of
    monkeypatch.setattr(distinct, "label_of", label_of)
    figure = with_distinct_lines(Figure(x="eval_prompts"), copies(fields))
    assert set(figure.lines) == {"model", "eval_seed", "dtype", "seeds"}
    assert {*Counter(labelled).values()} == {len(fields)}


@pytest.mark.parametrize("x", ["curve", "eval_prompts"])
def test_each_line_of_a_grid_of_settings_has_a_name_of_its_own(copies, x):
    grid = [{"eval_seed": i, "dtype": dtype} for i in range(3) for dtype in ("float32", "float64")]
    figure = with_distinct_lines(Figure(x=x), copies(grid))
    assert set(figure.lines) == {"model", "eval_seed", "dtype"}


def test_a_figure_of_more_lines_than_can_be_read_is_refused(copies):
    records = copies([{"eval_seed": i} for i in range(distinct.MOST_LINES + 1)])
    with pytest.raises(UsageError, match="would have 121 lines of 121 records, and at most 120"):
        with_distinct_lines(Figure(x="eval_prompts"), records)
    assert with_distinct_lines(Figure(x="eval_prompts"), records[1:]).lines[1] == "eval_seed"


@pytest.mark.parametrize(
    ("floor", "log", "level"),
    [
        (1e-14, True, "1e-14"),
        (1e-4, True, ""),
        (0.0, True, ""),
        (None, True, ""),
        (9.0, False, "9.000"),
        (1.0, False, ""),
    ],
)
def test_a_floor_far_away_is_named_and_not_drawn(floor, log, level):
    lines = [{"y": [0.3, 0.01, None]}, {"y": [0.5, 0.02]}]
    assert _far_level([{"y": [floor, floor]}], lines, log=log) == level
    # Bars are a part of the lines' height.
    tall = [{"y": [0.3], "low": [1e-9], "high": [3.0]}]
    assert _far_level([{"y": [floor]}], tall, log=log) == ""


def test_a_floor_of_rounding_does_not_flatten_lines_that_span_an_axis():
    # A solver's distance from itself is its rounding in float32, and the floor's is in float64.
    lines = [{"y": [2.0, 0.1]}, {"y": [1e-14, 1e-14]}]
    assert _far_level([{"y": [3.2e-32] * 2}], lines, log=True) == "3.2e-32"


def test_a_model_has_the_hue_that_it_has_on_other_pages(tmp_path):
    args = {"task": "least-squares", "task_args": {"dim": 2, "examples": [4, 6]}, "eval_prompts": 8}
    models = ["zero", "least-squares-qr"]
    records = sweep({"grid": [{"model": models, **args}]}, out=tmp_path).records
    about = Descriptions(pytest.fail, drawn=["other", *models])
    (view,) = study_views(Figure(x="task_args.examples"), records, about)
    styles = {item["name"]: item["style"] for item in view["figure"]["legend"]}
    assert styles["Zero"].startswith("c1 ")
    assert styles["QR"].startswith("c2 ")


def test_bars_of_several_seeds_are_drawn_and_said_to_be_their_range(tmp_path):
    grid = {"model": "baseconv", "model_args": {"layers": [1, 2]}, "task": "least-squares",
            "recipe": "smoke", "seeds": 2, "eval_prompts": 8}  # fmt: skip
    records = sweep({"grid": [grid]}, out=tmp_path).records
    (view,) = study_views(Figure(x="model_args.layers"), records, Descriptions(pytest.fail))
    assert view["figure"]["svg"].count('class="bar ') == 2
    assert view["figure"]["note"] == "Bars: range over seeds."
