"""A model's page: the names of its learning curves tell its evaluations apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.scale import Scale
from iclbench.leaderboards.site.model import (
    Scored,
    _commands,
    _settings,
    _share,
    model,
)
from iclbench.leaderboards.site.task_words import short_titles


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


def evaluated(board, **changes):
    """The board with another evaluation set."""
    row = board.rows[0]
    main = row.record.main.model_copy(update=changes)
    record = row.record.model_copy(update={"evaluations": {"main": main}})
    return replace(board, rows=(replace(row, record=record),))


def test_names_hold_what_differs_and_nothing_else(board, about):
    args = board.evaluation.task_args
    assert short_titles([board], about) == ["Least squares"]
    other = evaluated(board, task_args={**args, "dim": 7})
    assert short_titles([board, other], about) == [
        "Least squares, D\u00a0=\u00a02", "Least squares, D\u00a0=\u00a07",
    ]  # fmt: skip
    more = evaluated(board, prompts=2048)
    assert short_titles([board, more], about) == [
        "Least squares, 64 prompts", "Least squares, 2,048 prompts",
    ]  # fmt: skip


def test_data_that_a_title_names_is_in_the_name(board, about):
    boards = [evaluated(board, title=f"least-squares: {name}") for name in ("photos", "emoji")]
    names = short_titles(boards, about)
    assert names == ["Least squares, photos", "Least squares, emoji"]


def test_an_argument_without_words_tells_evaluations_apart(board, about, monkeypatch):
    silent = replace(about.task("least-squares"), arguments={"dim": ""})
    monkeypatch.setattr(about, "task", lambda name: silent)
    other = evaluated(board, task_args={**board.evaluation.task_args, "dim": 7})
    assert short_titles([board, other], about) == [
        "Least squares, dim=2", "Least squares, dim=7",
    ]  # fmt: skip


def test_the_table_says_whole_settings_and_tells_evaluation_sets_apart(board, about):
    args = board.evaluation.task_args
    setting = about.task("least-squares").settings(args)
    other, more = evaluated(board, task_args={**args, "dim": 7}), evaluated(board, prompts=2048)
    assert _settings([board, other], about) == [setting, setting.replace("2", "7", 1)]
    assert _settings([board, more], about) == [
        f"{setting}, 64 prompts",
        f"{setting}, 2,048 prompts",
    ]
    # A board of another dtype has its own column.
    assert _settings([board, board], about) == [setting, setting]
    named = evaluated(board, title="least-squares: emoji")
    assert _settings([named], about) == [f"emoji, {setting}"]


def test_sets_without_words_are_told_apart_by_arguments(board, about, monkeypatch):
    silent = replace(about.task("least-squares"), arguments={"dim": "", "examples": ""})
    monkeypatch.setattr(about, "task", lambda name: silent)
    other = evaluated(board, task_args={**board.evaluation.task_args, "dim": 7})
    settings = _settings([board, other], about)
    assert [setting.rpartition(", ")[2] for setting in settings] == ["dim=2", "dim=7"]


def test_a_model_s_page_begins_with_its_place_on_the_main_board_of_each_task(board, about):
    view = model("baseconv", [board], about)
    trained, constructed = view["standing"]
    best = max((row for row in board.rows if row.is_trained), key=lambda row: row.score)
    assert trained["id"] == best.record.id
    assert (trained["title"], trained["origin"]) == ("Least squares", "trained")
    assert (trained["track"], trained["best"]) == ("open", "")
    assert 'class="point"' in trained["strip"]
    assert constructed["origin"] == "constructed"
    assert view["is_trained"]


def in_float64(board):
    rows = []
    for row in board.rows:
        spec = row.record.spec.model_copy(update={"dtype": "float64"})
        rows.append(replace(row, record=row.record.model_copy(update={"spec": spec})))
    return replace(board, rows=tuple(rows))


def without(board, name):
    return replace(board, rows=tuple(r for r in board.rows if r.record.spec.model != name))


def test_the_main_board_is_that_of_all_models(board, about):
    name = "baseconv"
    # Most rows of the main set are in a dtype in which this model has none.
    double = without(in_float64(board), name)
    single = evaluated(board, prompts=64)
    other = evaluated(board, prompts=2048, digest="other")
    other = replace(other, rows=other.rows * 2)
    assert len(single.rows) < len(other.rows) < len(single.rows) + len(double.rows)
    main = model(name, [other, single, double], about)["standing"]
    assert {view["setting"].split(", ")[-2] for view in main} == {"64 prompts"}
    # Without a row there, it is shown where it has one.
    elsewhere = model(name, [other, double], about)["standing"]
    assert {view["setting"].split(", ")[-2] for view in elsewhere} == {"2,048 prompts"}


@pytest.mark.parametrize(
    ("ends", "share"), [((-9.0, -8.0), ">100%"), ((50.0, 60.0), "<0%"), ((-9.0, 1e6), "0%")]
)
@pytest.mark.parametrize("name", ["solver", ""])
def test_a_row_beyond_chance_or_the_reference_is_said_to_be(board, about, ends, share, name):
    row = next(row for row in board.rows if row.is_trained)
    cell = _share(Scale(*ends, name), row, board, about)
    assert cell["share"] == share
    assert cell["share_of"] == f"0% is chance, 100% {name or 'the best row'}"


def test_the_command_is_of_the_board_with_most_rows(board, about):
    view = model("baseconv", [board], about)
    titles = [title for title, _ in view["commands"]]
    assert titles == ["trained, on Least squares", "constructed, on Least squares"]
    few = evaluated(board, task_args={**board.evaluation.task_args, "dim": 7})
    large, small = (
        Scored(next(row for row in one.rows if row.is_trained), one, "", Scale(0.0, reference))
        for one, reference in ((board, 1e6), (few, 1.0))
    )
    ((_, command),) = _commands([small, large], about)
    assert command == large.row.record.command
