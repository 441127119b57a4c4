"""Models without the argument of the x axis are dashed lines; others have one point at each x."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run, sweep
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.figures.draw import draw
from iclbench.leaderboards.figures.panels import panels
from iclbench.leaderboards.site.study_figure import study_views
from iclbench.sweeps.figure import Figure

DEFAULTS = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 8}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    grids = [
        {"model": "baseconv", "recipe": "smoke", "model_args": {"layers": [3, 1]}, "seeds": 2},
        {"model": "gradient-descent", "model_args": {"steps": [1, 4]}},
        {"model": "zero"},
    ]
    return sweep({"defaults": DEFAULTS, "grid": grids}, out=tmp_path_factory.mktemp("r")).records


def named(figure):
    return {trace.name: trace for trace in figure.data}


def test_a_model_without_the_argument_is_a_dashed_line_over_the_axis(records):
    figure = draw(Figure(x="model_args.layers"), records)
    lines = named(figure)
    assert set(lines) == {"BaseConv", "attainable (floor)", "Gradient descent, 1 step",
                          "Gradient descent, 4 steps", "Zero"}  # fmt: skip
    zero = next(r for r in records if r.spec.model == "zero")
    assert list(lines["Zero"].x) == [1, 3]
    assert list(lines["Zero"].y) == [zero.metrics["squared_error"].digits.mean] * 2
    assert lines["Zero"].line.dash == "dash"
    assert lines["BaseConv"].line.dash == "solid"
    symbols = [lines[name].marker.symbol for name in ("BaseConv", "Zero")]
    assert symbols[0] != symbols[1]
    assert (list(lines["BaseConv"].x), lines["BaseConv"].mode) == ([1, 3], "lines+markers")
    assert list(figure.layout.xaxis.tickvals) == [1, 3]
    assert "dashed: models without layers" in figure.layout.title.text
    (view,) = study_views(Figure(x="model_args.layers"), records, Descriptions(pytest.fail))
    names = [item["name"] for item in view["figure"]["legend"]]
    assert names[:3] == ["BaseConv", "Gradient descent, 1 step", "Gradient descent, 4 steps"]


def test_a_model_without_what_tells_panels_apart_is_in_every_panel(records):
    rows = panels(Figure(x="seeds", panels=("model_args.layers",)), records)
    names = {panel.column: [line.name for line in panel.lines] for panel in rows[0]}
    assert set(names) == {"layers=1", "layers=3"}
    # A line whose model has none of the fields is called by its model.
    figure = Figure(x="seeds", panels=("model_args.layers",), lines=("model_args.layer_norm",))
    labels = [line.name for panel in panels(figure, records)[0] for line in panel.lines]
    assert labels.count("zero") == labels.count("gradient-descent") == 2


def test_a_reference_has_another_name_than_the_line_of_its_model(records, tmp_path):
    grid = {"model": "baseconv", "weights": "gd-causal", "weights_args": {"steps": 3}}
    built = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path).records
    # Two of them at one x would be two lines.
    some = [r for r in records if r.spec.model_args.get("layers") != 3]
    figure = draw(Figure(x="recipe_args.steps"), [*some, *built])
    lines = named(figure)
    assert lines["BaseConv, constructed: gd-causal"].mode == "markers"
    assert lines["BaseConv"].mode == "lines+markers"


def test_a_line_has_one_point_at_each_x(tmp_path):
    args = {"model": "baseconv", "task": "least-squares-prefixes", "recipe": "smoke", "seeds": 1}
    records = [
        run(**args, model_args={"layers": layers}, eval_prompts=prompts, out=tmp_path)
        for layers, prompts in ((1, 16), (2, 16), (2, 32))
    ]
    lines = named(draw(Figure(x="model_args.layers"), records))
    drawn = {name: list(line.x) for name, line in lines.items() if "floor" not in name}
    assert sorted(drawn.values()) == [[1, 2], [2]]
    assert all("prompts" in name for name in drawn)
    for x in ("state_bytes", "operations"):
        with pytest.raises(UsageError, match=r"on different prompts: .* such as eval_prompts"):
            draw(Figure(x=x), records)
        draw(Figure(x=x, panels=("eval_prompts",)), records)


def test_a_line_whose_records_lack_the_argument_in_part_keeps_its_points(records):
    some = [r for r in records if r.spec.model != "gradient-descent"]
    # The name of the model is needed to tell the two lines apart, and splits no line.
    points, floor, level = draw(Figure(x="model_args.layers", lines=("dtype",)), some).data
    assert (list(points.x), len(points.error_y.array)) == ([1, 3], 2)
    assert (list(floor.x), floor.line.dash) == ([1, 3], "dot")
    assert (list(level.x), level.line.dash) == ([1, 3], "dash")
    assert (points.name, level.name) == ("float32, BaseConv", "float32, Zero")


def test_over_categories_the_line_goes_from_the_first_to_the_last(records, tmp_path):
    grid = {"model": "transformer", "recipe": "smoke",
            "model_args": {"width": 8, "attention": ["softmax", "linear"]}}  # fmt: skip
    trained = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path).records
    zero = next(r for r in records if r.spec.model == "zero")
    figure = draw(Figure(x="model_args.attention"), [zero, *trained])
    lines = named(figure)
    places = list(lines["Transformer"].x)
    assert lines["Transformer"].mode == "markers"
    assert list(lines["Zero"].x) == places
    assert lines["Zero"].line.dash == "dash"
    assert list(figure.layout.xaxis.categoryarray) == places


def test_an_axis_that_no_record_has_is_an_error(records):
    with pytest.raises(UsageError, match=r"figure: no record has model_args\.layer$"):
        draw(Figure(x="model_args.layer"), records)


def test_seeds_of_a_training_share_a_color_and_the_figure_says_so(records):
    trained = [r for r in records if r.spec.model == "baseconv"]
    figure = draw(Figure(x="training"), trained)
    colors = [trace.line.color for trace in figure.data]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert "the seeds of a model have one color" in figure.layout.title.text


def test_an_argument_that_a_spec_omits_has_a_panel_and_a_place_of_its_own(records):
    record = next(r for r in records if r.spec.origin == "trained")
    name = "positions"
    assert name not in record.spec.model_args
    args = {**record.spec.model_args, name: "none"}
    other = record.model_copy(update={"spec": record.spec.model_copy(update={"model_args": args})})
    (row,) = panels(Figure(x="model_args.layers", panels=(f"model_args.{name}",)), [record, other])
    assert [panel.column for panel in row] == ["positions=learned", "positions=none"]
    assert [len(panel.lines[0].x) for panel in row] == [1, 1]
    spec = record.spec
    args = {**spec.recipe_args, "accumulate": 2}
    other = record.model_copy(update={"spec": spec.model_copy(update={"recipe_args": args})})
    ((panel,),) = panels(Figure(x="recipe_args.accumulate"), [other, record])
    assert panel.lines[0].x == [1, 2]
