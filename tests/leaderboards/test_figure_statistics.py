"""The statistic of curves: medians of errors, means of other metrics, or what is asked for."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run
from iclbench.api.config import parse_config
from iclbench.leaderboards.figures.draw import draw
from iclbench.sweeps.figure import Figure


@pytest.fixture(scope="module")
def classified(tmp_path_factory):
    return run("averaging", "linear-classification", eval_prompts=32,
               out=tmp_path_factory.mktemp("results"))  # fmt: skip


@pytest.fixture(scope="module")
def regressed(tmp_path_factory):
    return run("gradient-descent", "least-squares-prefixes", eval_prompts=32,
               out=tmp_path_factory.mktemp("results"))  # fmt: skip


def test_curves_of_accuracy_show_means_which_lie_between_0_and_1(classified):
    figure = draw(Figure(x="curve", y="prefix_accuracy"), [classified])
    curve = classified.curves["prefix_accuracy"]
    assert list(figure.data[0].y) == curve.mean
    assert any(0 < value < 1 for value in curve.mean)
    assert set(curve.median) <= {0.0, 0.5, 1.0}
    assert figure.layout.yaxis.title.text == "mean prefix accuracy"
    assert figure.layout.yaxis.type == "linear"


def test_curves_show_the_statistic_that_is_asked_for(classified, regressed):
    medians = draw(Figure(x="curve", y="prefix_accuracy", statistic="median"), [classified])
    assert list(medians.data[0].y) == classified.curves["prefix_accuracy"].median
    assert medians.layout.yaxis.title.text == "median prefix accuracy"
    means = draw(Figure(x="curve", y="prefix_error", statistic="mean"), [regressed])
    line, floor = means.data
    assert list(line.y) == regressed.curves["prefix_error"].mean
    assert list(floor.y) == regressed.main.floor.curves["prefix_error"].mean
    assert means.layout.yaxis.title.text == "mean squared error after k examples"
    default = draw(Figure(x="curve", y="prefix_error"), [regressed])
    assert list(default.data[0].y) == regressed.curves["prefix_error"].median


@pytest.mark.parametrize("content", [{"x": "training"}, {"x": "steps"}, {"maps": "boundary"}])
@pytest.mark.parametrize("option", [{"statistic": "mean"}, {"y": "nll"}])
def test_what_would_change_nothing_is_refused(content, option):
    with pytest.raises(UsageError, match="does not apply to"):
        parse_config(Figure, {**content, **option}, "figure")
