"""Figures: drawn from records alone, by a command or by a sweep."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run, sweep
from iclbench.api.config import parse_config
from iclbench.leaderboards.figures.draw import draw
from iclbench.leaderboards.figures.export import write_page
from iclbench.sweeps.figure import Figure

PREFIXES = {"task": "least-squares-prefixes", "eval_prompts": 32}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    grid = [
        {"model": "baseconv", "recipe": "smoke", "model_args": {"layers": [2, 1]}, "seeds": 2},
        {"model": "gradient-descent", "model_args": {"steps": [1, 4]}},
    ]
    return sweep({"defaults": PREFIXES, "grid": grid}, out=out).records


def named(figure):
    return {trace.name: trace for trace in figure.data}


def test_points_are_the_records_scores_with_the_range_over_seeds(records):
    trained = [r for r in records if r.spec.model == "baseconv"]
    figure = draw(Figure(x="model_args.layers"), trained)
    lines = named(figure)
    line = lines["BaseConv"]
    ordered = sorted(trained, key=lambda r: r.spec.model_args["layers"])
    assert list(line.x) == [1, 2]
    assert list(line.y) == [r.metrics["squared_error"].digits.mean for r in ordered]
    seeds = [s["squared_error"].digits.mean for s in ordered[0].main.seeds]
    assert line.y[0] + line.error_y.array[0] == pytest.approx(max(seeds))
    assert line.y[0] - line.error_y.arrayminus[0] == pytest.approx(min(seeds))
    floor = lines["attainable (floor)"]
    assert list(floor.y) == [r.floor["squared_error"].digits.mean for r in ordered]
    axis = figure.layout.yaxis
    assert (axis.title.text, axis.type) == ("digits of the error", "linear")
    assert "of the absolute error" in figure.layout.title.text


def test_an_axis_with_few_numbers_has_a_tick_at_each(records):
    trained = [r for r in records if r.spec.model == "baseconv"]
    figure = draw(Figure(x="model_args.layers"), trained)
    assert list(figure.layout.xaxis.tickvals) == [1, 2]


def test_records_that_have_a_field_can_be_left_out(records):
    figure = draw(Figure(x="model_args.layers", lacks=("model_args.steps",)), records)
    assert set(named(figure)) == {"BaseConv", "attainable (floor)"}
    with pytest.raises(UsageError, match="a figure needs records"):
        draw(Figure(x="model_args.layers", lacks=("model",)), records)
    with pytest.raises(UsageError, match="unknown field 'weight'"):
        parse_config(Figure, {"x": "model", "lacks": ["weight"]}, "figure")


def test_scores_of_several_scales_need_panels_of_their_own(records, tmp_path):
    guessed = run(model="class-frequency", task="categorical", eval_prompts=32, out=tmp_path)
    both = [records[0], guessed]
    with pytest.raises(UsageError, match=r"digits of squared_error .* panels keep them apart"):
        draw(Figure(x="model"), both)
    figure = draw(Figure(x="model", panels=("task",)), both)
    titles = [figure.layout.yaxis.title.text, figure.layout.yaxis2.title.text]
    assert titles == ["digits of the error", "mean negative log-likelihood in nats"]
    assert figure.layout.yaxis2.matches is None


def test_each_value_of_a_field_gets_a_line(records):
    solved = [r for r in records if r.spec.model == "gradient-descent"]
    lines = named(draw(Figure(x="dtype", lines=("model", "model_args.steps")), solved))
    assert {"Gradient descent, 1 step", "Gradient descent, 4 steps"} <= set(lines)


def test_scores_are_drawn_against_the_state_of_a_layer(records):
    lines = named(figure := draw(Figure(x="state_bytes"), records))
    # Solvers carry no state, and two models with equal states are told apart.
    assert set(lines) == {"BaseConv, 1 layer", "BaseConv, 2 layers", "attainable (floor)"}
    trained = [r for r in records if r.spec.model == "baseconv"]
    length = 2 * 20 + 1
    assert {r.state_sizes for r in trained} == {(length * 16,), (length * 16,) * 2}
    scores = {r.metrics["squared_error"].digits.mean for r in trained}
    points = [*lines["BaseConv, 1 layer"].x, *lines["BaseConv, 2 layers"].x]
    assert points == [4 * length * 16] * 2
    assert {*lines["BaseConv, 1 layer"].y, *lines["BaseConv, 2 layers"].y} == scores
    assert set(lines["attainable (floor)"].y) == {trained[0].floor["squared_error"].digits.mean}
    assert figure.layout.xaxis.type == "log"
    assert figure.layout.xaxis.title.text == "state after a prompt, bytes per layer"
    linear = draw(Figure(x="state_bytes", log_x=False), records)
    assert linear.layout.xaxis.type is None
    solved = [r for r in records if r.spec.model != "baseconv"]
    with pytest.raises(UsageError, match="no record tells the size of its model's state"):
        draw(Figure(x="state_bytes"), solved)


def test_curves_run_along_their_axis(records):
    solved = [r for r in records if r.spec.model == "gradient-descent"][:1]
    figure = draw(Figure(x="curve", y="prefix_error"), solved)
    line, floor = figure.data
    assert (list(line.x), list(line.y)) == ([*range(21)], solved[0].curves["prefix_error"].median)
    assert list(floor.y) == solved[0].main.floor.curves["prefix_error"].median
    assert figure.layout.xaxis.title.text == "examples in the prompt"
    assert (floor.name, floor.showlegend) == ("attainable (floor)", None)
    assert figure.layout.yaxis.title.text == "median squared error after k examples"
    assert figure.layout.yaxis.type == "log"


def test_training_curves_have_a_line_per_seed(records):
    trained = [r for r in records if r.spec.model == "baseconv"][:1]
    figure = draw(Figure(x="training"), trained)
    assert [trace.name for trace in figure.data] == ["BaseConv, seed 0", "BaseConv, seed 1"]
    assert list(figure.data[0].y) == [row[0] for row in trained[0].training.curve]


def test_a_curve_of_a_single_point_is_visible(records):
    record = next(r for r in records if r.spec.model == "baseconv")
    first = {"curve_steps": record.training.curve_steps[:1], "curve": record.training.curve[:1]}
    training = record.training.model_copy(update=first)
    (line, _) = draw(Figure(x="training"), [record.model_copy(update={"training": training})]).data
    assert (len(line.x), line.mode) == (1, "markers")


@pytest.mark.parametrize("log_x", [None, True])
def test_the_floor_of_categories_is_a_mark_at_each(records, log_x):
    figure = draw(Figure(x="model", log_x=log_x), records)
    floors = [trace for trace in figure.data if trace.name == "attainable (floor)"]
    assert {x for floor in floors for x in floor.x} == {"BaseConv", "Gradient descent"}
    assert {floor.mode for floor in floors} == {"markers"}
    assert {axis.type for axis in figure.select_xaxes()} == {None}


@pytest.mark.parametrize("cost", ["operations", "seconds", "steps"])
def test_validation_is_drawn_against_its_cost(records, cost):
    trained = [r for r in records if r.validation_curve]
    assert trained
    figure = draw(Figure(x=cost, lines=("model", "model_args.layers")), records)
    assert len(figure.data) == len(trained)
    line, curve = figure.data[0], trained[0].validation_curve
    assert list(line.x) == getattr(curve, cost)
    # The median of two seeds is their mean.
    assert list(line.y) == pytest.approx([sum(pair) / 2 for pair in zip(*curve.mean, strict=True)])
    assert figure.layout.xaxis.type == "log"


def test_validation_needs_a_training(records):
    solved = [r for r in records if r.validation_curve is None]
    with pytest.raises(UsageError, match="needs records of trainings"):
        draw(Figure(x="operations"), solved)


def test_metrics_are_stacked_panels_and_fields_are_panels_side_by_side(tmp_path):
    grid = {"model": "nearest-neighbour-vote", "model_args": {"neighbours": [1, 3]},
            "task": "categorical", "task_args": {"examples": [5, 10]}}  # fmt: skip
    records = sweep({"defaults": {"eval_prompts": 64}, "grid": [grid]}, out=tmp_path).records
    asked = {"x": "model_args.neighbours", "y": ["accuracy", "nll"], "log_x": True,
             "panels": ["task_args.examples"]}  # fmt: skip
    figure = draw(parse_config(Figure, asked, "figure"), records)
    shown = [t for t in figure.data if t.name == "Neighbour vote"]
    assert [t.xaxis for t in shown] == ["x", "x2", "x3", "x4"]
    assert [t.showlegend for t in shown] == [None, False, False, False]
    for trace, (metric, examples) in zip(
        shown, [("accuracy", 5), ("accuracy", 10), ("nll", 5), ("nll", 10)], strict=True
    ):
        members = [r for r in records if r.spec.task_args["examples"] == examples]
        assert list(trace.x) == [1, 3]
        assert list(trace.y) == [r.metrics[metric].mean for r in members]
    assert [a.text for a in figure.layout.annotations] == ["N\u00a0=\u00a05", "N\u00a0=\u00a010"]
    assert figure.layout.xaxis4.type == "log"
    assert figure.layout.yaxis3.type == "linear"
    titles = [figure.layout[f"yaxis{i}"].title.text or "" for i in ("", 3)]
    assert titles == ["mean accuracy", "mean negative log-likelihood in nats"]
    logarithmic = draw(Figure(x="model_args.neighbours", y="nll", log_y=True), records)
    assert logarithmic.layout.yaxis.type == "log"


def test_a_page_needs_no_network(records, tmp_path):
    drawing = draw(Figure(x="model", title="A title"), records)
    write_page(drawing, tmp_path / "sub" / "page.html")
    page = (tmp_path / "sub" / "page.html").read_text("utf-8")
    assert "A title" in page
    assert "https://" not in page.split("plotly.min.js")[0]
    assert (tmp_path / "sub" / "plotly.min.js").stat().st_size > 1e6


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({"x": "model_arg.layers"}, "did you mean 'model_args'"),
        ({"x": "model.layers"}, "model has no fields"),
        ({"x": "model", "y": "squared_eror"}, "did you mean 'squared_error'"),
        ({"x": "curve"}, "no curve of squared_error"),
        ({"x": "model", "y": ["squared_error", "nl"]}, "unknown metric 'nl'"),
        ({"x": "model", "panels": ["task_arg.dim"]}, "did you mean 'task_args'"),
        ({"maps": "krylov"}, "unknown analysis 'krylov'"),
        ({"x": "model", "maps": "krylov"}, "needs either x or maps"),
        ({}, "needs either x or maps"),
    ],
)
def test_what_can_t_be_drawn_is_an_error(records, figure, message):
    with pytest.raises(UsageError, match=message):
        draw(parse_config(Figure, figure, "figure"), records)


def test_the_command_and_a_sweep_write_the_page(cli, tmp_path):
    run(model="zero", **PREFIXES, out=tmp_path / "records")
    page = tmp_path / "figure.html"
    drawn = cli("leaderboard", "figure", tmp_path / "records", "--x", "curve", "--y",
                "prefix_error", "--file", page)  # fmt: skip
    assert drawn.code == 0
    assert "median squared error after k examples" in page.read_text("utf-8")
    file = tmp_path / "steps.toml"
    file.write_text(
        """
        [defaults]
        task = "least-squares"
        eval_prompts = 16
        [[grid]]
        model = "gradient-descent"
        model_args = { steps = [1, 2] }
        [figure]
        x = "model_args.steps"
        """
    )
    swept = cli("sweep", file, "--out", tmp_path / "swept")
    assert swept.code == 0
    assert f"figure: {tmp_path / 'swept' / 'steps.html'}" in swept.out
    assert (tmp_path / "swept" / "steps.html").exists()
    panels = cli("leaderboard", "figure", tmp_path / "records", "--x", "model", "--y",
                 "squared_error, prefix_error", "--panels", "dtype", "--file", page)  # fmt: skip
    assert panels.code == 0
    assert "float32" in page.read_text("utf-8")
    refused = cli("leaderboard", "figure", tmp_path / "records", "--x", "nonsense")
    assert refused.code == 2
    assert refused.err.count("\n") == 1


def test_evaluations_under_shift_are_panels(tmp_path):
    grid = [{"model": "averaging", "task_args": {"examples": [6, 8]}}]
    defaults = {"task": "least-squares", "eval_prompts": 16, "shift": ["values-double"]}
    drawn = sweep({"defaults": defaults, "grid": grid}, out=tmp_path).records
    asked = Figure(x="task_args.examples", y="squared_error", shifts=("main", "values-double"))
    figure = draw(asked, drawn)
    assert [a.text for a in figure.layout.annotations[:2]] == ["as trained", "values-double"]
    lines = [trace for trace in figure.data if trace.name == "Averaging"]
    ordered = sorted(drawn, key=lambda r: r.spec.task_args["examples"])
    for line, name in zip(lines, ("main", "values-double"), strict=True):
        statistics = [r.evaluations[name].metrics["squared_error"] for r in ordered]
        assert list(line.y) == [s.digits.mean for s in statistics]
    with pytest.raises(UsageError, match="no record has an evaluation under the shift skewed"):
        draw(asked.model_copy(update={"shifts": ("skewed",)}), drawn)
    with pytest.raises(UsageError, match="shifts make panels of metrics"):
        parse_config(Figure, {"x": "dtype", "panels": ["model"], "shifts": ["main"]}, "figure")
