"""`leaderboard build`: tables that follow from the records alone, and the precision profile."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from iclbench import RecordStore, run
from iclbench.leaderboards.build import build
from iclbench.leaderboards.comparison import paired_difference
from iclbench.leaderboards.formats import arguments, difference_text
from iclbench.leaderboards.pages import MADE
from iclbench.leaderboards.precision import by_precision, is_at_floor, profile
from iclbench.leaderboards.tables import leaderboard, ranked_values

ROOT = Path(__file__).parents[2]
TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 128}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaderboards")
    out = folder / "records"
    for model in ("least-squares-qr", "ridge", "zero"):
        run(model=model, **TINY, out=out)
    run(model="least-squares-qr", **TINY, dtype="float64", out=out)
    run(model="baseconv", **TINY, recipe="smoke", seeds=2, out=out)
    run(model="baseconv", **TINY, weights="gd-causal", weights_args={"steps": 2}, out=out)
    run(model="class-frequency", task="categorical", eval_prompts=32, out=out)
    build(folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    kinds = {".md", ".csv", ".parquet"}
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
            if p.suffix in kinds}  # fmt: skip


def test_the_same_records_give_the_same_files(folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    build(tmp_path)
    assert files(tmp_path) == files(folder)
    assert set(files(folder)) == {"README.md", "precision.md", "rows.csv", "rows.parquet",
                                  "tasks/categorical.md", "tasks/least-squares.md"}  # fmt: skip


def test_published_tables_are_those_of_the_published_records(tmp_path):
    published = ROOT / "leaderboards"
    if not (published / "records").is_dir():
        pytest.skip("no records are published yet")
    (tmp_path / "records").symlink_to(published / "records")
    build(tmp_path)
    made, there = files(tmp_path), files(published)
    for name in ("rows.parquet",):
        # Its bytes tell the version of the writer.
        a, b = (pd.read_parquet(io.BytesIO(found.pop(name))) for found in (made, there))
        pd.testing.assert_frame_equal(a, b)
    assert made == there


def test_the_overview_marks_where_weights_are_from_and_who_is_at_the_floor(folder):
    page = (folder / "README.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    cells = {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows[:7]}
    assert list(cells)[:2] == ["model", "floor"]
    assert cells["model"] == ["categorical", "least-squares"]
    assert cells["least-squares-qr"][1].startswith("**")
    assert cells["least-squares-qr"][1].endswith("▲")
    assert cells["zero"][1].endswith("▲")
    assert "**" not in cells["zero"][1]
    # The model's best row, be it trained or constructed.
    board = leaderboard(folder / "records")[1]
    best = next(s for s in board.standings if s.record.spec.model == "baseconv")
    mark = {"trained": "●", "constructed": "◆"}[best.record.spec.origin]
    assert cells["baseconv"][1].endswith(mark)
    assert "v1" in page
    assert "(tasks/categorical.md)" in page


def test_a_task_s_page_holds_what_it_must(folder):
    page = (folder / "tasks" / "least-squares.md").read_text("utf-8")
    assert page.startswith(MADE)
    for text in ("float32", "float64", "◆ constructed: gd-causal", "● trained", "20 × 16",
                 "cpu (1 threads)", "iclbench run --model ridge", "128 prompts"):  # fmt: skip
        assert text in page
    board = next(b for b in leaderboard(folder / "records") if len(b.records) == 5)
    store = RecordStore(folder / "records")
    above, row = (ranked_values(store.path(s.record.spec), s.record) for s in board.standings[:2])
    found = paired_difference(row, above, digits=True)
    assert board.standings[0].above is None
    assert board.standings[1].above == pytest.approx(found)
    assert difference_text(found, "log") in page


def test_a_difference_is_in_digits_gained_and_marked_beyond_doubt():
    worse = paired_difference(np.full((1, 50), 1e-2), np.full((1, 50), 1e-4), digits=True)
    assert difference_text(worse, "log") == "-2.00 [-2.00, -2.00] *"
    same = paired_difference(np.ones((1, 50)), np.ones((1, 50)), digits=True)
    assert difference_text(same, "log") == "+0.00 [+0.00, +0.00]"
    linear = paired_difference(np.full((1, 50), 0.5), np.full((1, 50), 0.25), digits=False)
    assert difference_text(linear, "linear") == "+0.25 [+0.25, +0.25] *"


def test_all_rows_are_in_the_flat_tables(folder):
    rows = pd.read_csv(folder / "rows.csv")
    store = RecordStore(folder / "records")
    assert sorted(rows["record"]) == [str(p.relative_to(store.folder)) for p in store.paths()]
    parquet = pd.read_parquet(folder / "rows.parquet")
    assert parquet["digest"].tolist() == rows["digest"].tolist()
    assert parquet["median"].tolist() == pytest.approx(rows["median"].tolist())
    solver = rows.set_index(["model", "dtype"]).loc[("least-squares-qr", "float64")]
    assert solver["at_floor"]
    assert solver["digits"] == pytest.approx(-np.log10(solver["median"]))
    assert pd.isna(rows.set_index("model").loc["class-frequency", "digits"])


def test_the_profile_counts_prompts_by_digits():
    values = np.array([[1.0, 1e-3, 2e-3, 0.0], [np.nan, np.inf, 1e-16, 5.0]])
    found = profile(values)
    assert len(found) == 17
    assert found[0] == 5 / 8
    assert found[2] == 4 / 8
    assert found[3] == 3 / 8
    assert found[16] == 2 / 8


def test_rows_at_the_floor_share_the_first_rank_of_the_precision_board(folder):
    boards = [b for b in leaderboard(folder / "records") if len(b.records) == 5]
    rows = by_precision(boards[0])
    assert rows[0][0] == "1"
    assert rows[0][1].record.spec.model == "least-squares-qr"
    assert [is_at_floor(s.record) for _, s in rows] == [True, False, False, False, False]
    page = (folder / "precision.md").read_text("utf-8")
    assert "at the floor" in page
    assert "categorical" not in page  # it ranks by no error


def test_pages_of_tasks_that_are_gone_go_and_those_by_hand_stay(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "records" / "categorical")
    (tmp_path / "copy" / "tasks" / "notes.md").write_text("mine")
    build(tmp_path / "copy", parquet=False)
    assert {p.name for p in (tmp_path / "copy" / "tasks").iterdir()} == {
        "least-squares.md", "notes.md"}  # fmt: skip


def test_a_damaged_record_is_said_and_nothing_is_written(cli, folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    path = next((tmp_path / "records").glob("*/zero*.json"))
    path.write_text(path.read_text().replace('"zero"', '"ridge"'))
    found = cli("leaderboard", "build", tmp_path)
    assert found.code == 2
    assert "was edited" in found.err
    assert [p.name for p in tmp_path.iterdir()] == ["records"]


def test_arguments_are_written_short():
    values = {"task_seed": 0, "sizes": [2, 3, 4, 9], "noise": None, "order": "any", "x": [0.5]}
    assert arguments(values) == "sizes=2-4,9, order=any, x=[0.5]"
