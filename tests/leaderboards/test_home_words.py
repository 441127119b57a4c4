"""The lines below the title of the home page are counted in the records."""

from __future__ import annotations

from dataclasses import replace

from iclbench.leaderboards.board import Board, leaderboard
from iclbench.leaderboards.site.home_words import home_lines


def tracked(board, tracks, **changes):
    trained = next(row for row in board.rows if row.is_trained)
    rows = [
        replace(trained, record=trained.record.model_copy(update={"track": track, **changes}))
        for track in tracks
    ]
    return Board((*rows, *(row for row in board.rows if not row.is_trained)), board.floor)


def test_lines_say_what_the_numbers_are_how_sure_and_how_long(leaderboards):
    boards = leaderboard(leaderboards / "records")
    lines = dict(home_lines(boards))
    assert list(lines) == [
        "What the numbers are", "How sure they are", "How long models were trained"]  # fmt: skip
    # Anchors rank by their negative log-likelihood.
    assert "1 of 3 tasks shows the mean of its metric" in lines["What the numbers are"]
    count = sum(len(board.rows) for board in boards)
    assert lines["How sure they are"].startswith(f"2 of {count} results are of trained models, ")
    assert "with 2 seeds, on 64 prompts" in lines["How sure they are"]
    assert lines["How long models were trained"].startswith(
        "2 results: for as long as their authors chose (open budgets). Half of the models "
    )


def test_tracks_are_counted_the_most_frequent_first(board):
    text = dict(home_lines([tracked(board, ["1m", "1m", "2h", None])]))[
        "How long models were trained"
    ]
    assert text.startswith(
        "Of 4 results, 2 for 1 core minute per seed (track 1m), 1 for 2 core hours per seed "
        "(track 2h) and 1 for as long as their authors chose (open budgets)."
    )
    assert "The usual model has " in text
    unknown = dict(home_lines([tracked(board, ["1m"], parameters=None)]))
    assert "parameters" not in unknown["How long models were trained"]


def test_without_trained_rows_there_is_one_line(board):
    rows = tuple(row for row in board.rows if not row.is_trained)
    ((name, text),) = home_lines([Board(rows, board.floor)])
    assert name == "What the numbers are"
    assert "metric" not in text


def test_boards_without_digits_show_means_alone(leaderboards):
    boards = [b for b in leaderboard(leaderboards / "records") if b.task == "categorical"]
    assert home_lines(boards) == [
        ("What the numbers are", "The mean of each task's metric, such as the negative "
         "log-likelihood.")]  # fmt: skip
