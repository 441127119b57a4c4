"""A row that held-out prompts contradict stands for its model nowhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from heldout_files import contradicted

from iclbench import RecordStore, run
from iclbench.display.overview import overview_table
from iclbench.leaderboards.board import comparable, leaderboard
from iclbench.leaderboards.held_out import without_failing
from iclbench.leaderboards.level import level_of
from iclbench.leaderboards.overview import overviews
from iclbench.leaderboards.representative import is_one_training
from iclbench.leaderboards.row import credible
from iclbench.leaderboards.scale import board_scale
from iclbench.leaderboards.site.plots import best_of_models
from iclbench.leaderboards.site.settings import best_by_model
from iclbench.runs.heldout import held_out_path, read_held_out, write_held_out
from iclbench.runs.heldout_evaluation import evaluate_held_out
from iclbench.runs.store import read_record

TINY = {"task": "least-squares", "recipe": "smoke", "seeds": 2, "eval_prompts": 64,
        "task_args": {"dim": 2, "examples": 4}}  # fmt: skip


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two trained rows of a model, of which held-out prompts contradict the better one."""
    for layers in (1, 2):
        run("baseconv", **TINY, model_args={"layers": layers}, out=tmp_path)
    run("zero", **TINY, out=tmp_path)
    contradicted(best_path(tmp_path))
    return tmp_path


def best_path(folder: Path) -> Path:
    trained = [p for p in RecordStore(folder).paths() if p.name.startswith("baseconv")]
    return max(trained, key=lambda path: read_record(path).score)


def test_another_row_stands_for_the_model(folder):
    (board,) = leaderboard(folder)
    trained = [row for row in board.rows if row.is_trained]
    assert [row.fails_held_out for row in trained] == [True, False]
    (other,) = credible(trained)
    (view,) = [view for view in overviews([board]) if view.origin == "trained"]
    assert list(view.best.values()) == [other]
    assert best_by_model(trained) == [other]
    assert best_of_models(trained) == [other]
    without_solvers = type(board)(tuple(trained), None)
    assert board_scale(without_solvers).reference == level_of(other.record).value


def test_a_row_that_waits_for_held_out_prompts_stands_for_no_model_yet(folder, tmp_path_factory):
    """Its weights may know the board's prompts."""
    held_out_path(best_path(folder)).unlink()
    published = tmp_path_factory.mktemp("boards") / "records"
    shutil.copytree(folder, published)
    best = best_path(published)
    (other,) = [p for p in RecordStore(published).paths()
                if p.name.startswith("baseconv") and p != best]  # fmt: skip
    write_held_out(other, evaluate_held_out(other, read_record(other), "00" * 32))
    (board,) = leaderboard(published)
    waiting, row = (row for row in board.rows if row.is_trained)
    assert (waiting.unranked, waiting.at_floor) == ("not held out", False)
    assert credible(board.rows)[0] is row
    at_places = [(path, read_record(path)) for path in RecordStore(published).paths()]
    assert waiting.record.id not in {r.id for r in without_failing(at_places, print)}
    # Beside rows that were pulled, your own, which nobody asked for, waits for nothing.
    shutil.copytree(published, published.parent / "results")
    (board,) = leaderboard(published.parent / "results")
    assert waiting.record.id in {row.record.id for row in credible(board.rows)}


def test_a_row_waits_if_those_of_another_board_have_held_out_prompts(folder, tmp_path_factory):
    """All of a folder are submitted alike."""
    published = tmp_path_factory.mktemp("boards") / "records"
    shutil.copytree(folder, published)
    other = run("baseconv", **{**TINY, "task_args": {"dim": 3, "examples": 4}}, out=published)
    by_model = {row.record.id: row for board in leaderboard(published) for row in board.rows}
    assert by_model[other.id].unranked == "not held out"
    at_places = [(path, read_record(path)) for path in RecordStore(published).paths()]
    assert other.id not in {record.id for record in without_failing(at_places, print)}


def test_an_origin_without_a_credible_row_has_no_overview(folder, tmp_path):
    for path in RecordStore(folder).paths():
        if path.name.startswith("baseconv") and path != best_path(folder):
            path.unlink()
            break
    (board,) = leaderboard(folder)
    assert [row.fails_held_out for row in board.rows if row.is_trained] == [True]
    assert [view.origin for view in overviews([board])] == ["solver"]


def test_the_terminal_s_overview_and_suites_leave_it_out(folder):
    at_places = [(path, read_record(path)) for path in RecordStore(folder).paths()]
    problems: list[str] = []
    records = list(without_failing(at_places, problems.append))
    assert (len(at_places), len(records), problems) == (3, 2, [])
    groups = comparable([record for _, record in at_places])
    (line,) = overview_table(groups, {record.id for record in records}).rows
    (trained,) = [record for record in records if record.spec.origin == "trained"]
    assert line["score"].value == trained.score


def test_a_damaged_evaluation_is_reported_and_its_record_left_out(folder):
    path = held_out_path(best_path(folder))
    path.write_text(path.read_text("utf-8")[:-40], "utf-8")
    problems: list[str] = []
    at_places = [(path, read_record(path)) for path in RecordStore(folder).paths()]
    assert len(list(without_failing(at_places, problems.append))) == 2
    assert len(problems) == 1
    assert "not a held-out evaluation" in problems[0]


def test_a_single_seed_keeps_its_mark_whatever_else_is_wrong(folder):
    record = read_record(best_path(folder))
    assert not is_one_training(record)
    single = record.model_copy(update={"seeds": record.seeds[:1]})
    assert is_one_training(single)


def test_every_published_evaluation_reads():
    root = Path(__file__).parents[2] / "leaderboards" / "records"
    paths = sorted(root.rglob("*.heldout.json"))
    assert paths
    for path in paths:
        record_path = path.with_name(path.name.replace(".heldout.json", ".json"))
        assert read_held_out(record_path, read_record(record_path)) is not None
