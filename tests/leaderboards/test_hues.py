"""A model has one color and one kind of dashes on all pages of a site."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site.hues import (
    COLORS,
    DASHES,
    MOST_HUES,
    hues_of,
    style,
    trained_models,
)
from iclbench.leaderboards.site.marks import mark
from iclbench.leaderboards.site.plots import board_curves, lines_of, profiles, validation_curves


def test_the_models_of_a_site_come_first_and_others_keep_theirs():
    about = Descriptions(pytest.fail, drawn=["transformer", "lsa"])
    assert [about.hue("transformer"), about.hue("lsa")] == [0, 1]
    unknown = about.hue("of no plugin")
    assert unknown == about.hue("of no plugin") > 1
    assert about.hue("transformer") == 0


def test_a_hue_does_not_depend_on_the_other_lines():
    about = Descriptions(pytest.fail, drawn=["a", "b", "c"])
    assert hues_of(["c", "a"], about) == [2, 0]
    assert hues_of(["b", "c"], about) == [1, 2]


def test_further_lines_of_a_model_have_its_color_and_other_dashes():
    names = [f"m{i}" for i in range(2 * COLORS)]
    about = Descriptions(pytest.fail, drawn=names)
    # The second of m2 comes before m12, which has the same color and keeps its own dashes.
    hues = hues_of(["m2", "m2", f"m{COLORS + 2}", "m3"], about)
    assert hues[0] == 2
    assert hues[2:] == [COLORS + 2, 3]
    styles = [style(hue) for hue in hues]
    assert styles[0]["color"] == styles[1]["color"]
    assert len({tuple(one.values()) for one in styles}) == 4


def test_lines_of_one_model_are_told_apart_by_color():
    about = Descriptions(pytest.fail, drawn=["a", "b"])
    assert hues_of(["b"] * 3, about) == [0, 1, 2]
    assert hues_of([*["a"] * (len(DASHES) + 1), "b"], about) == list(range(len(DASHES) + 2))


def test_no_two_of_as_many_lines_as_can_be_told_apart_look_alike():
    styles = {tuple(style(hue).values()) for hue in range(MOST_HUES)}
    assert len(styles) == MOST_HUES
    marks = {mark("c0", dash, 0.0, 0.0) for dash in DASHES}
    assert len(marks) == len(DASHES)


def test_a_model_looks_the_same_in_every_figure_of_a_board(board):
    about = Descriptions(pytest.fail, drawn=["other", *trained_models([board])])
    trained = trained_models([board])
    assert trained
    plots = [profiles(board, about), *board_curves(board, about), *validation_curves(board, about)]
    drawn = [line for one in plots if one for line in one["lines"] if "hue" in line]
    title = about.model(trained[0]).title
    # A construction of the model has its color, too.
    assert {line["hue"] % COLORS for line in drawn if line["name"].startswith(title)} == {1}
    assert {line["hue"] for line in drawn if line["name"] == title} == {1}


def test_lines_have_the_titles_of_models_and_settings_only_where_they_share_one(board):
    about = Descriptions(pytest.fail)
    row = replace(next(row for row in board.rows if row.is_trained), label="baseconv layers=2")
    line = {"x": [1], "y": [1.0]}
    (alone,) = lines_of([row], [line], about)
    assert alone["name"].startswith("BaseConv")
    assert "layers" not in alone["name"]
    other = replace(row, label="baseconv layers=3")
    names = [one["name"] for one in lines_of([row, other], [line, line], about)]
    assert ["layers=2" in names[0], "layers=3" in names[1]] == [True, True]
