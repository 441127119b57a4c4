"""`leaderboard build`: its files follow from the records alone."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from iclbench import RecordStore
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.build import build
from iclbench.leaderboards.formats import arguments, difference
from iclbench.leaderboards.pages import GENERATED
from iclbench.leaderboards.ranking import paired_difference

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(leaderboards, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(leaderboards / "records", folder / "records")
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
    tasks = {f"tasks/{task}.md" for task in ("categorical", "least-squares",
                                             "least-squares-prefixes")}  # fmt: skip
    assert set(files(folder)) == tasks | {"README.md", "precision.md", "rows.csv", "rows.parquet"}


def test_the_published_tables_follow_from_the_published_records(tmp_path):
    published = ROOT / "leaderboards"
    if not (published / "records").is_dir():
        pytest.skip("no records are published yet")
    (tmp_path / "records").symlink_to(published / "records")
    build(tmp_path)
    built, committed = files(tmp_path), files(published)
    # Parquet's bytes depend on the version of its writer.
    tables = [pd.read_parquet(io.BytesIO(f.pop("rows.parquet"))) for f in (built, committed)]
    pd.testing.assert_frame_equal(*tables)
    assert built == committed


def test_the_overview_marks_origins_and_rows_at_the_floor(folder):
    page = (folder / "README.md").read_text("utf-8")
    lines = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ")]
    cells = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[:7]}
    assert list(cells)[:2] == ["model", "floor"]
    assert cells["model"] == ["categorical", "least-squares", "least-squares-prefixes"]
    assert cells["least-squares-qr"][1].startswith("**")
    assert cells["least-squares-qr"][1].endswith("▲")
    assert cells["zero"][1].endswith("▲")
    assert "**" not in cells["zero"][1]
    # The cell shows the model's best row, whether it is trained or constructed.
    board = next(b for b in leaderboard(folder / "records") if len(b.rows) == 5)
    best = next(row for row in board.rows if row.record.spec.model == "baseconv")
    assert cells["baseconv"][1].endswith({"trained": "●", "constructed": "◆"}[best.origin])
    assert "v1" in page
    assert "(tasks/categorical.md)" in page


def test_a_task_page_shows_every_row_with_its_command(folder):
    page = (folder / "tasks" / "least-squares.md").read_text("utf-8")
    assert page.startswith(GENERATED)
    for text in ("float32", "float64", "◆ constructed: gd-causal", "● trained", "20 × 16",
                 "cpu (1 threads)", "iclbench run --model zero", "64 prompts"):  # fmt: skip
        assert text in page
    board = next(b for b in leaderboard(folder / "records") if len(b.rows) == 5)
    for row in board.rows:
        assert f"# {row.rank} {row.label}: {row.file}\n{row.record.command}" in page
    paired = paired_difference(board.rows[1].values, board.rows[0].values, log=True)
    assert difference(paired, "log") in page


def test_a_difference_is_in_digits_gained_and_marked_if_significant():
    worse = paired_difference(np.full((1, 50), 1e-2), np.full((1, 50), 1e-4), log=True)
    assert difference(worse, "log") == "-2.00 [-2.00, -2.00] *"
    same = paired_difference(np.ones((1, 50)), np.ones((1, 50)), log=True)
    assert difference(same, "log") == "+0.00 [+0.00, +0.00]"
    linear = paired_difference(np.full((1, 50), 0.5), np.full((1, 50), 0.25), log=False)
    assert difference(linear, "linear") == "+0.25 [+0.25, +0.25] *"


def test_the_export_holds_every_row(folder):
    table = pd.read_csv(folder / "rows.csv")
    store = RecordStore(folder / "records")
    assert set(table["record"]) == {str(p.relative_to(store.folder)) for p in store.paths()}
    assert table["record"].is_unique
    parquet = pd.read_parquet(folder / "rows.parquet")
    assert parquet["digest"].tolist() == table["digest"].tolist()
    assert parquet["median"].tolist() == pytest.approx(table["median"].tolist())
    solver = table.set_index(["task", "model", "dtype"]).loc[
        ("least-squares", "least-squares-qr", "float64")
    ]
    assert solver["at_floor"]
    assert solver["digits"] == pytest.approx(-np.log10(solver["median"]))
    assert pd.isna(table.set_index("model").loc["class-frequency", "digits"])


def test_the_precision_page_shows_errors_alone(folder):
    page = (folder / "precision.md").read_text("utf-8")
    assert "at the floor" in page
    assert "least-squares-qr" in page
    assert "categorical" not in page


def test_pages_of_tasks_without_records_are_deleted_and_others_stay(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "records" / "categorical")
    (tmp_path / "copy" / "tasks" / "notes.md").write_text("mine")
    build(tmp_path / "copy", parquet=False)
    assert {p.name for p in (tmp_path / "copy" / "tasks").iterdir()} == {
        "least-squares.md", "least-squares-prefixes.md", "notes.md"}  # fmt: skip


def test_a_damaged_record_is_an_error_and_nothing_is_written(cli, folder, tmp_path):
    shutil.copytree(folder / "records", tmp_path / "records")
    path = next((tmp_path / "records").glob("*/zero*.json"))
    path.write_text(path.read_text().replace('"zero"', '"ridge"'))
    outcome = cli("leaderboard", "build", tmp_path)
    assert outcome.code == 2
    assert "was edited" in outcome.err
    assert [p.name for p in tmp_path.iterdir()] == ["records"]


def test_arguments_are_abbreviated():
    values = {"task_seed": 0, "sizes": [2, 3, 4, 9], "noise": None, "order": "any", "x": [0.5]}
    assert arguments(values) == "sizes=2-4,9, order=any, x=[0.5]"
