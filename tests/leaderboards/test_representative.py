"""A model's best row is chosen among those with several seeds, whatever a single one scored."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iclbench import run
from iclbench.display.overview import overview_table
from iclbench.leaderboards.board import Board, comparable, leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.level import level_of
from iclbench.leaderboards.overview import overviews
from iclbench.leaderboards.overview_page import overview_page
from iclbench.leaderboards.representative import is_one_training, representing, weakness
from iclbench.leaderboards.row import Row
from iclbench.leaderboards.scale import board_scale
from iclbench.leaderboards.site.dotplot import board_dots
from iclbench.leaderboards.site.matrix import column_of
from iclbench.leaderboards.site.plots import best_of_models, names_of
from iclbench.leaderboards.site.settings import best_by_model

TINY = {"model": "baseconv", "task": "least-squares", "recipe": "smoke", "eval_prompts": 64,
        "task_args": {"dim": 2, "examples": 4}}  # fmt: skip


@pytest.fixture(scope="module")
def board(tmp_path_factory) -> Board:
    """A row of one seed, a worse one of two seeds that hardly learned, and chance."""
    out = tmp_path_factory.mktemp("representative")
    run(**TINY, seeds=1, recipe_args={"steps": 300, "learning_rate": 0.01}, out=out)
    run(**TINY, seeds=2, recipe_args={"steps": 1, "learning_rate": 1e-9}, out=out)
    run(**TINY | {"model": "zero"}, out=out)
    (board,) = leaderboard(out)
    return board


@pytest.fixture
def rows(board) -> tuple[Row, Row]:
    """The trained rows of the board: of one seed and of two."""
    single, several = sorted((r for r in board.rows if r.is_trained), key=lambda row: row.seeds)
    assert single.goodness > several.goodness
    assert is_one_training(single.record)
    assert not is_one_training(several.record)
    return single, several


def trained_view(board: Board):
    return next(view for view in overviews([board]) if view.origin == "trained")


def test_several_seeds_come_before_one(board, rows):
    single, several = rows
    assert representing([single, several]) == [several]
    assert representing([single]) == [single]
    assert list(trained_view(board).best.values()) == [several]
    assert best_by_model(rows) == best_of_models(rows) == [several]
    scale = board_scale(Board((single, several), None))
    assert scale.reference == level_of(several.record).value
    (line,) = overview_table(comparable(board.records), {r.id for r in board.records}).rows
    assert line["score"].value == several.score


def test_a_bad_row_of_another_model_is_no_reference_for_one_of_one_seed(rows):
    """Whoever trains a single seed is still measured by the best row, not by a worse model's."""
    single, several = rows
    other = several.record.model_copy(
        update={"spec": several.record.spec.model_copy(update={"model": "other"})}
    )
    board = Board((single, replace(several, record=other)), None)
    assert board_scale(board).reference == level_of(single.record).value


def test_another_subject_may_be_represented(rows):
    assert representing(rows, lambda row: row.record.id) == list(rows)


def test_random_weights_come_before_given_ones(board, rows):
    def given(row):
        spec = row.record.spec.model_copy(update={"init": "gd-causal"})
        return replace(row, record=row.record.model_copy(update={"spec": spec}))

    single, several = rows
    assert weakness(several.record) < weakness(single.record)
    assert weakness(single.record) < weakness(given(several).record)
    assert weakness(given(several).record) < weakness(given(single).record)
    assert representing([given(several), single]) == [single]
    view = trained_view(Board((given(single), several), board.floor))
    assert list(view.best.values()) == [several]
    solver = next(row for row in board.rows if not row.is_trained)
    assert weakness(solver.record) == 0


def test_a_row_of_one_seed_that_stands_alone_says_so(board, rows):
    single, _ = rows
    alone = Board(tuple(row for row in board.rows if row not in rows[1:]), board.floor)
    assert list(trained_view(alone).best.values()) == [single]
    page = overview_page([alone], "0" * 64)
    assert "†: one seed" in page
    (line,) = [line for line in page.splitlines() if line.startswith("| baseconv")]
    assert "†" in line
    table = overview_table(comparable(alone.records), {single.record.id})
    assert table.rows[0]["score"].text.endswith(" †")
    assert "one seed" in " ".join(table.notes)


def test_the_site_s_cells_and_names_say_so_too(rows):
    single, several = rows
    about = Descriptions(print)
    for row, mark in ((single, "†"), (several, "")):
        board = Board((row,), None)
        (cell,) = column_of("", board, [row], about)["cells"].values()
        assert cell["bounds"].startswith(mark)
        drawn = re.sub("<title>.*?</title>", "", board_dots(board, [""], about, 7))
        assert ("†" in drawn) == bool(mark)
        assert names_of([row], about)[0].endswith(", one seed") == bool(mark)


def test_a_training_over_its_budget_is_weak(board):
    (record,) = [r for r in board.records if len(r.seeds) == 2]
    assert weakness(record) == 0
    for seconds, weak in ((119.0, 0), (121.0, 1)):
        budget = record.budget.model_copy(update={"core_seconds": seconds})
        assert weakness(record.model_copy(update={"budget": budget, "track": "1m"})) == weak
