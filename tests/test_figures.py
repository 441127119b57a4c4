"""Figures: from records alone, by a command or by a sweep."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run, sweep
from iclbench.config import parse_config
from iclbench.leaderboards.figures import Figure, draw, save

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


def test_points_are_the_records_own_with_the_range_over_seeds(records):
    trained = [r for r in records if r.spec.model == "baseconv"]
    lines = named(draw(Figure(x="model_args.layers"), trained))
    line = lines["baseconv"]
    ordered = sorted(trained, key=lambda r: r.spec.model_args["layers"])
    assert list(line.x) == [1, 2]
    assert list(line.y) == [r.metrics["squared_error"].median for r in ordered]
    seeds = [s.metrics["squared_error"].median for s in ordered[0].seeds]
    assert line.y[0] + line.error_y.array[0] == pytest.approx(max(seeds))
    assert line.y[0] - line.error_y.arrayminus[0] == pytest.approx(min(seeds))
    floor = lines["baseconv: floor"]
    assert list(floor.y) == [r.floor["squared_error"].median for r in ordered]


def test_lines_are_set_apart_by_fields(records):
    solved = [r for r in records if r.spec.model == "gradient-descent"]
    lines = named(draw(Figure(x="dtype", lines=("model", "model_args.steps")), solved))
    assert {"gradient-descent steps=1", "gradient-descent steps=4"} <= set(lines)


def test_curves_run_along_their_axis(records):
    solved = [r for r in records if r.spec.model == "gradient-descent"][:1]
    figure = draw(Figure(x="curve", y="prefix_error"), solved)
    line, floor = figure.data
    assert list(line.x) == list(range(21))
    assert list(line.y) == solved[0].curves["prefix_error"].median
    assert list(floor.y) == solved[0].floor_curves["prefix_error"].median
    assert figure.layout.xaxis.title.text == "prefix"


def test_training_curves_have_a_line_a_seed(records):
    trained = [r for r in records if r.spec.model == "baseconv"][:1]
    figure = draw(Figure(x="training"), trained)
    assert [trace.name for trace in figure.data] == ["baseconv, seed 0", "baseconv, seed 1"]
    assert list(figure.data[0].y) == [row[0] for row in trained[0].training.curve]


def test_a_page_shows_itself_without_a_network(records, tmp_path):
    save(Figure(x="model", title="A title"), records, tmp_path / "sub" / "page.html")
    page = (tmp_path / "sub" / "page.html").read_text("utf-8")
    assert "A title" in page
    assert "https://" not in page.split("plotly.min.js")[0]
    assert (tmp_path / "sub" / "plotly.min.js").stat().st_size > 1e6


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        ({"x": "model_arg.layers"}, "did you mean 'model_args'"),
        ({"x": "model.layers"}, "model has no parts"),
        ({"x": "model", "y": "squared_eror"}, "did you mean 'squared_error'"),
        ({"x": "curve"}, "no curve of squared_error"),
    ],
)
def test_what_can_t_be_drawn_is_said(records, figure, message):
    with pytest.raises(UsageError, match=message):
        draw(parse_config(Figure, figure, "figure"), records)


def test_the_command_and_a_sweep_write_the_page(cli, tmp_path):
    run(model="zero", **PREFIXES, out=tmp_path / "records")
    page = tmp_path / "figure.html"
    drawn = cli("leaderboard", "figure", tmp_path / "records", "--x", "curve", "--y",
                "prefix_error", "--file", page)  # fmt: skip
    assert drawn.code == 0
    assert "prefix_error" in page.read_text("utf-8")
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
    refused = cli("leaderboard", "figure", tmp_path / "records", "--x", "nonsense")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
