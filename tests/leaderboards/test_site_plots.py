"""Plots with more lines than colors: names at their ends, or a choice of lines."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from iclbench import RecordStore, leaderboard, run
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.reading import boards_of
from iclbench.leaderboards.site import plots
from iclbench.leaderboards.site.figure import figure, figures
from iclbench.leaderboards.site.plot_notes import MOST_BANDS, SEEDS
from iclbench.leaderboards.site.plots import (
    COLORS,
    LONGEST_Y,
    MOST_NAMES,
    _along,
    best_of_models,
    board_curves,
    drawn_rows,
    plot,
    record_curves,
)
from iclbench.leaderboards.site.svg import NAMED, TOP

COUNT = COLORS + 5


def lines(ends):
    return [{"name": f"model {i}", "x": [0, 1], "y": [0.0, end]} for i, end in enumerate(ends)]


def test_lines_that_end_apart_have_their_names_there():
    view = figure(plot("t", "x", "y", lines(map(float, range(COUNT))), log=False))
    assert view["wide"]
    named = re.findall(r'<text class="end" x="[\d.]+" y="([\d.]+)">(model \d+)</text>', view["svg"])
    assert [name for _, name in named] == [f"model {i}" for i in range(COUNT)]
    heights = sorted(float(y) for y, _ in named)
    assert min(b - a for a, b in itertools.pairwise(heights)) > 10


def test_as_many_names_as_fit_are_beside_the_plot_and_not_below_its_axis():
    # Most lines end in the lower half, but for two.
    ends = [1.0, 0.9, *(i / 40 for i in range(MOST_NAMES - 2))]
    view = figure(plot("t", "x", "y", lines(ends), log=False))
    heights = [
        float(y) for y in re.findall(r'<text class="end" x="[\d.]+" y="([\d.]+)"', view["svg"])
    ]
    assert len(heights) == MOST_NAMES
    assert TOP <= min(heights) <= max(heights) <= NAMED.bottom
    assert min(b - a for a, b in itertools.pairwise(sorted(heights))) > 10


def test_lines_that_end_together_but_for_one_wait_in_the_legend_too():
    """Their names would take the whole height, and thin lines to them look like a fall."""
    ends = [1e-13, *(10 ** (-i / 20) for i in range(COUNT))]
    drawn = [{"name": f"{i}", "x": [0, 1], "y": [1.0, end]} for i, end in enumerate(ends)]
    assert not figure(plot("t", "x", "y", drawn, log=True))["wide"]


def test_lines_that_end_together_are_all_drawn_and_have_a_legend():
    view = figure(plot("t", "x", "y", lines([1.0] * COUNT), log=False))
    assert not view["wide"]
    assert [line["name"] for line in view["legend"]] == [f"model {i}" for i in range(COUNT)]
    assert view["svg"].count('class="line ') == COUNT
    assert "off" not in view["svg"]
    assert 'class="end"' not in view["svg"]


def test_a_long_name_is_shortened_in_the_drawing_and_hides_no_line():
    drawn = lines(map(float, range(COUNT)))
    drawn[3]["name"] = "model of very many settings " * 3
    view = figure(plot("t", "x", "y", drawn, log=False))
    assert view["wide"]
    assert view["svg"].count('class="line ') == COUNT
    assert ">model of very many settings…<" in view["svg"]
    assert view["legend"][3]["name"] == drawn[3]["name"]
    # Those that begin alike lose what is between their beginnings and their ends.
    drawn[3]["name"], drawn[4]["name"] = (
        f"Multiply, D = 8, N = 10, {n} prompts" for n in (64, 128)
    )
    named = [line["label"] for line in plot("t", "x", "y", drawn, log=False)["lines"]]
    assert named[3:5] == ["Multiply, D = 8…64 prompts", "Multiply, D = 8…128 prompts"]
    # Names that would be shortened to the same are in the legend alone.
    drawn[4]["name"] = drawn[3]["name"].replace("N = 10", "N = 20")
    assert not figure(plot("t", "x", "y", drawn, log=False))["wide"]


def test_the_legend_of_a_single_point_shows_a_point():
    drawn = [
        {"name": "point", "x": [1], "y": [2]},
        {"name": "line", "x": [1, 2], "y": [1, 3]},
        {"name": "floor", "x": [1], "y": [0], "reference": True},
    ]
    view = figure(plot("t", "x", "y", drawn, log=False))
    assert ["circle" in line["key"] for line in view["legend"]] == [True, True, False]
    assert ['class="line' in line["key"] for line in view["legend"]] == [False, True, True]


def test_a_curve_that_says_what_it_runs_along_does_not_say_it_twice():
    assert _along("query error by iterate", "iterate") == "Query error by iterate"
    assert _along("squared error", "size") == "Squared error by size"


@pytest.mark.parametrize(
    ("model", "task", "metric", "statistic"),
    [
        ("averaging", "linear-classification", "prefix_accuracy", "mean"),
        ("gradient-descent", "least-squares-prefixes", "prefix_error", "median"),
    ],
)
def test_curves_are_medians_of_errors_and_means_of_other_metrics(
    tmp_path, model, task, metric, statistic
):
    record, about = run(model, task, eval_prompts=32, out=tmp_path), Descriptions(pytest.fail)
    curves = [record.curves[metric], record.main.floor.curves.get(metric)]
    (board,) = boards_of([record], RecordStore(tmp_path), pytest.fail)
    of_board = board_curves(board, about)[0]
    assert of_board["y"]["title"].startswith(f"{statistic} ")
    expected = [getattr(curve, statistic) for curve in curves if curve]
    assert [line["y"] for line in of_board["lines"]] == expected
    of_record = record_curves(record, about.task(task))[0]["lines"]
    assert [line["name"] for line in of_record if not line.get("reference")] == (
        ["mean"] if statistic == "mean" else ["median", "mean"]
    )
    floors = [line["y"] for line in of_record if line.get("reference")]
    assert floors == expected[1:]


def test_few_lines_are_all_shown_without_names():
    view = figure(plot("t", "x", "y", lines([1.0] * COLORS), log=False))
    assert not view["wide"]


def test_ends_are_compared_as_the_axis_shows_them():
    small = lines([10.0**-i for i in range(COUNT)])
    for line in small:
        line["y"][0] = 1.0
    assert plot("t", "x", "y", small, log=True)["wide"]
    assert not plot("t", "x", "y", small, log=False)["wide"]


def test_lines_of_one_color_count_once():
    drawn = [line | {"hue": i % 4} for i, line in enumerate(lines([1.0] * COUNT))]
    view = plot("t", "x", "y", drawn, log=False)
    assert len({(line["color"], line["dash"]) for line in view["lines"]}) == 4
    assert not view["wide"]


def test_hostile_and_missing_ends_stop_no_page():
    hostile = [math.nan, math.inf, 1e307, -1e307, None]
    view = figure(plot("t", "x", "y", lines((hostile * COUNT)[:COUNT]), log=False))
    assert view["svg"].startswith("<svg")
    assert plot("t", "x", "y", lines([None] * COUNT), log=True)["wide"] is False


def test_two_lines_of_reference_can_be_told_apart():
    model = {"name": "model", "x": [1, 2], "y": [3.0, 2.0]}
    floors = [
        {"name": dtype, "x": [1, 2], "y": [y, y], "reference": True}
        for dtype, y in (("float32", 1.0), ("float64", 0.5))
    ]
    lines = plot("t", "x", "y", [floors[0], model, floors[1]], log=False)["lines"]
    assert [line["dash"] for line in lines] == ["dotted", "solid", "sparse"]


def test_lines_without_points_and_plots_without_lines_are_left_out():
    empty = {"name": "untrained", "x": [], "y": []}
    unknown = {"name": "diverged", "x": [1, 2], "y": [None, math.inf]}
    floor = {"name": "floor", "x": [1, 2], "y": [1.0, 1.0], "reference": True}
    drawn = plot("t", "x", "y", [empty, *lines([2.0]), unknown], log=False)
    assert [line["name"] for line in drawn["lines"]] == ["model 0"]
    assert [line["name"] for line in figure(drawn)["legend"]] == ["model 0"]
    nothing = plot("nothing", "x", "y", [empty, floor], log=False)
    assert [view["title"] for view in figures([nothing, drawn])] == ["t"]


def test_the_first_lines_are_drawn_and_the_note_counts_the_others():
    floor = {"name": "floor", "x": [0, 1], "y": [0.0, 0.0], "reference": True}
    view = plot("t", "x", "y", [*lines([1.0, 2.0, 3.0]), floor], log=False, most=2)
    assert [line["name"] for line in view["lines"]] == ["model 0", "model 1", "floor"]
    assert view["note"] == "1 more line left out."
    assert plot("t", "x", "y", lines([1.0, 2.0]), log=False, most=2)["note"] == ""


def test_a_logarithmic_axis_leaves_out_lines_at_0():
    """The most exact lines are named, as if they had not run."""
    zero, other = ({"name": name, "x": [1, 2], "y": [y, y]} for name, y in [("a", 0.0), ("b", 1.0)])
    drawn = plot("t", "x", "y", [zero, other], log=True)
    assert [line["name"] for line in drawn["lines"]] == ["b"]
    assert drawn["note"] == "Exactly 0 everywhere, and so not on this axis: a."


def test_a_wide_plot_has_a_narrow_drawing_with_a_legend_for_phones():
    view = figure(plot("t", "x", "y", lines(map(float, range(COUNT))), log=False))
    assert view["narrow"].startswith('<svg class="narrow" viewBox="0 0 460 ')
    assert 'class="end"' not in view["narrow"]
    assert all(f'data-line="{i}"' in view["narrow"] for i in range(COUNT))
    assert figure(plot("t", "x", "y", lines([1.0]), log=False))["narrow"] == ""


def test_bands_are_the_range_over_seeds_and_many_wait_for_a_reader():
    for count in (MOST_BANDS, MOST_BANDS + 1):
        drawn = [
            line | {"low": [0.0, None], "high": [1.0, None], "band": True}
            for line in lines([1.0] * count)
        ]
        view = figure(plot("t", "x", "y", drawn, log=False, spread=SEEDS))
        is_many = count > MOST_BANDS
        assert ('class="many"' in view["svg"]) == is_many
        assert view["svg"].count('class="band ') == count
        assert view["note"].startswith("Point at" if is_many else "Bands: range over seeds")
    assert figure(plot("t", "x", "y", lines([1.0]), log=False))["note"] == ""


def test_a_long_name_of_the_vertical_axis_is_above_the_plot():
    for name, is_above in (("n" * LONGEST_Y, False), ("n" * (LONGEST_Y + 1), True)):
        view = figure(plot("t", "x", name, lines([1.0]), log=False))
        assert view["y"] == {"title": name, "log": False, "integers": True, "above": is_above}
        assert (name in view["svg"]) != is_above


def test_of_more_rows_than_are_drawn_the_best_of_each_origin_is(leaderboards, monkeypatch):
    (board,) = (
        one
        for one in leaderboard(leaderboards)
        if (one.task, one.dtype) == ("least-squares", "float32")
    )
    best = best_of_models(board.rows)
    assert drawn_rows(board.rows) == best
    monkeypatch.setattr(plots, "MOST_LINES", 2)
    origins = [row.origin for row in drawn_rows(board.rows)]
    assert sorted(origins[:2]) == ["constructed", "solver"]
    assert sorted(origins) == sorted(row.origin for row in best)
