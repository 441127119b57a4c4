"""Which evaluation stands for a task: one with a track, and its rows of one track alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iclbench import RecordStore
from iclbench.api.record import MAIN
from iclbench.leaderboards.board import Board, boards, tracks_of
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.site import settings
from iclbench.leaderboards.site.dotplot import board_dots
from iclbench.leaderboards.site.home import compute_panel, main_board, panels
from iclbench.leaderboards.site.matrix import tables
from iclbench.leaderboards.site.task import task
from iclbench.runs.store import read_record


@pytest.fixture(scope="module")
def tracked(leaderboards, tmp_path_factory):
    """The boards of least-squares, and one more: a trained row of the track 10m in five dimensions.

    The row of three layers was trained in the track, and one of two layers in an open budget.
    """
    old = RecordStore(leaderboards / "records")
    records = [read_record(path) for path in old.paths()]
    new = []
    for record in records:
        new.append(record)
        if record.spec.origin == "trained":
            args = {**record.main.task_args, "dim": 5}
            spec = record.spec.model_copy(update={"task_args": args})
            main = record.main.model_copy(update={"task_args": args})
            track = "10m" if record.spec.model_args["layers"] == 1 else None
            new.append(record.model_copy(
                update={"spec": spec, "id": spec.id, "evaluations": {MAIN: main}, "track": track}
            ))  # fmt: skip
    store = RecordStore(tmp_path_factory.mktemp("tracked"))
    for path in old.folder.rglob("objects/**/*"):
        if path.is_file():
            target = store.folder / path.relative_to(old.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    for record in new:
        store.write(record.sealed())
    return boards([read_record(path) for path in store.paths()], store)


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


def least_squares(found):
    return [board for board in found if board.task == "least-squares"]


def test_an_evaluation_with_a_track_comes_before_a_larger_one(tracked, about):
    first, *rest = settings.by_evaluation(least_squares(tracked)).values()
    assert [len(board.rows) for board in first] == [2]
    assert sum(len(board.rows) for board in rest[0]) > 2
    sections = task("least-squares", least_squares(tracked), about)["sections"]
    assert [section["budget"] for section in sections] == ["10m, open budgets", "open budgets"]
    assert "D\u00a0=\u00a05" in sections[0]["title"]


def test_each_group_of_a_table_has_a_heading_with_the_number_of_its_ranked_rows(tracked, about):
    section, *others = task("least-squares", least_squares(tracked), about)["sections"]
    assert [row["heading"] for row in section["rows"] if "heading" in row] == [
        "Track 10m: not ranked · 10 minutes of core time for each seed · float32",
        "Open budgets: not ranked · float32",
    ]
    assert ["heading" in row for row in section["rows"]] == [True, False] * 2
    assert [row["group"] for row in section["rows"]] == [0, 0, 1, 1]
    assert section["count"] == 2
    headings = [row["heading"] for other in others for row in other["rows"] if "heading" in row]
    assert headings == [
        "Open budgets: 2 ranked rows · float32",
        "Reference rows: not ranked · float32",
    ]


def test_boards_of_one_setting_are_told_apart_by_their_prompts(tracked, about):
    board = next(board for board in tracked if board.has_tracks)
    fewer = [
        replace(row, record=row.record.model_copy(update={"evaluations": {
            MAIN: row.record.main.model_copy(update={"digest": "0" * 64, "prompts": 32})}}))
        for row in board.rows
    ]  # fmt: skip
    view = task("least-squares", [board, Board(tuple(fewer), board.floor)], about)
    titles = sorted(section["title"].rpartition(", ")[2] for section in view["sections"])
    assert titles == ["32 prompts", "64 prompts"]


def test_without_tracks_the_largest_evaluation_stands_for_a_task(tracked):
    open_ones = [board for board in least_squares(tracked) if not board.has_tracks]
    assert len(settings.main_boards(open_ones)) == 2  # both dtypes
    assert len(settings.main_boards(tracked)) == len({b.task for b in tracked})


def test_home_shows_the_track_and_says_so(tracked, about):
    assert main_board(least_squares(tracked)).has_tracks
    panel = panels(least_squares(tracked), about)[0]
    assert panel["setting"].startswith("10 core minutes per seed · D\u00a0=\u00a05")
    shown = re.findall(r"runs/([\w-]+)\.html", panel["svg"])
    row = next(r for board in tracked for r in board.rows if r.track == "10m")
    assert shown == [row.record.id]
    compute = compute_panel(tracked, about)
    assert compute["setting"] == panel["setting"]
    assert re.findall(r"runs/([\w-]+)\.html", compute["svg"]) == [row.record.id]


def test_the_panel_of_compute_has_the_longest_training_of_each_model(tracked, about):
    (board,) = (board for board in least_squares(tracked) if board.has_tracks)
    short, long = (
        replace(row, record=row.record.model_copy(update={"track": track}))
        for row, track in zip(board.rows, ("10m", "2h"), strict=True)
    )
    compute = compute_panel([Board((short, long), None)], about)
    assert re.findall(r"runs/([\w-]+)\.html", compute["svg"]) == [long.record.id]
    assert compute["setting"].startswith("2 core hours per seed")
    assert ", 2h" not in compute["svg"]
    # A label names a track other than that of most models.
    spec = short.record.spec.model_copy(update={"model": "lsa"})
    other = replace(short, record=short.record.model_copy(update={"spec": spec}))
    assert ", 2h" in compute_panel([Board((short, other, long), None)], about)["svg"]


@pytest.mark.parametrize("more", ["1m", "10m"])
def test_the_first_track_is_that_of_most_models_and_of_equal_ones_the_longest(tracked, more):
    record = next(row.record for board in tracked for row in board.rows if row.track)

    def of_track(track, models):
        spec = record.spec
        return [record.model_copy(update={"track": track, "spec": spec.model_copy(
            update={"model": f"model-{i}"})}) for i in range(models)]  # fmt: skip

    equal = [*of_track("1m", 2), *of_track("10m", 2), *of_track("1h", 2), *of_track(None, 3)]
    assert tracks_of(equal) == ["1h", "10m", "1m", ""]
    assert tracks_of([*equal, *of_track(more, 3)])[0] == more


def test_the_rows_of_all_tracks_are_in_one_plot(tracked, about):
    board = next(board for board in tracked if board.has_tracks)
    assert board.tracks == ["10m", ""]
    sections = task("least-squares", least_squares(tracked), about)["sections"]
    assert len(sections[0]["dots"]) == 1
    assert [track for track, _ in sections[0]["sizes"]] == ["", "10m"]
    assert set(re.findall(r"runs/([\w-]+)\.html", sections[0]["dots"][0])) == {
        row.record.id for row in board.rows
    }
    assert board_dots(board, ["2h"], about, 7) is None


@pytest.mark.parametrize(
    ("track", "words"),
    [("10m", "10m, 10 minutes of core time for each seed"),
     ("30s", "30s, 30 seconds of core time for each seed"),
     ("gpu-1h", "gpu-1h, 1 hour of one GPU for each seed"),
     ("paper", "paper")],
)  # fmt: skip
def test_a_track_in_words(track, words):
    assert settings.track_in_words(track) == words


def test_the_table_of_home_has_the_rows_of_the_panel_s_track(tracked, about):
    """The panel shows 10m; a better row of the same model with an open budget is not in it."""
    (board,) = (board for board in least_squares(tracked) if board.has_tracks)
    shown = tables([board], about)["tables"]
    by_track = {table["track"]: table for table in shown}
    (cell,) = (cell for row in by_track[""]["rows"] for cell in row["cells"])
    best = max((r for r in board.rows if r.track == "10m"), key=lambda row: row.goodness)
    assert (cell["id"], cell["track"]) == (best.record.id, "")
    for track in ("10m", "open"):
        (cell,) = (cell for row in by_track[track]["rows"] for cell in row["cells"])
        assert cell["track"] == ""
