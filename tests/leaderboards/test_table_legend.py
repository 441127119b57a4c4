"""The legend of a table names the marks that the table has, and no others."""

from __future__ import annotations

from dataclasses import replace

from iclbench.leaderboards.board import Board
from iclbench.leaderboards.ranking import Rank
from iclbench.leaderboards.site.table_legend import legend


def test_only_marks_that_occur_are_explained(board):
    words = dict(legend([board]))
    assert words["○"] == "trained, not tuned"
    assert {"○", "▲", "◆", "chance", "perhaps at chance"} <= words.keys()
    assert not {"●", "◇", "†", "alone", "fewer", "at chance"} & words.keys()


def test_each_mark_of_a_row_is_explained(board):
    trained = next(row for row in board.rows if row.is_trained)
    changed = replace(
        trained,
        rank=None,
        unranked="alone",
        fewer_seeds=True,
        chance="worse than chance",
        bounds=trained.bounds._replace(kind="range over seeds"),
    )
    words = dict(legend([Board((changed, replace(trained, rank=Rank(2, 4))), None)]))
    assert {"alone", "fewer", "worse than chance", "‡", "rank 2–4"} <= words.keys()
