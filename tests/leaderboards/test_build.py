"""`leaderboard build`: its files follow from the records alone."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pandas as pd
import pytest
from support import limited_file_size

from iclbench.leaderboards.build import build
from iclbench.leaderboards.page_parts import GENERATED
from iclbench.runs.store import RecordStore, read_record

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    kinds = {".md", ".csv", ".parquet"}
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
            if p.suffix in kinds}  # fmt: skip


def test_the_same_records_give_the_same_files(built, tmp_path):
    shutil.copytree(built / "records", tmp_path / "records")
    shutil.copy(built / "cited.toml", tmp_path)
    build(tmp_path)
    assert files(tmp_path) == files(built)
    tasks = {f"tasks/{task}.md" for task in ("categorical", "least-squares",
                                             "least-squares-prefixes")}  # fmt: skip
    assert set(files(built)) == tasks | {
        "README.md",
        "precision.md",
        "stale.md",
        "rows.csv",
        "rows.parquet",
        "curves.parquet",
    }


def test_the_published_tables_follow_from_the_published_records(tmp_path):
    published = ROOT / "leaderboards"
    if not (published / "records").is_dir():
        pytest.skip("no records are published yet")
    for name in ("records", "studies", "cited.toml", "findings.toml"):
        (tmp_path / name).symlink_to(published / name)
    build(tmp_path)
    built, committed = files(tmp_path), files(published)
    # It compares the records with the installed code, which changes without them.
    assert built.pop("stale.md")
    committed.pop("stale.md", None)
    # Parquet's bytes depend on the version of its writer.
    for name in {"rows.parquet", "curves.parquet"} & (built.keys() | committed.keys()):
        tables = [pd.read_parquet(io.BytesIO(f.pop(name))) for f in (built, committed)]
        pd.testing.assert_frame_equal(*tables)
    assert built == committed


def test_pages_of_tasks_without_records_are_deleted_and_others_stay(built, tmp_path):
    shutil.copytree(built, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "records" / "categorical")
    (tmp_path / "copy" / "tasks" / "notes.md").write_bytes("für mich".encode("latin-1"))
    build(tmp_path / "copy", parquet=False)
    assert {p.name for p in (tmp_path / "copy" / "tasks").iterdir()} == {
        "least-squares.md", "least-squares-prefixes.md", "notes.md"}  # fmt: skip


def test_tables_of_earlier_records_do_not_stay(built, tmp_path):
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    assert (folder / "rows.parquet").exists()
    assert "rows.parquet" in (folder / "README.md").read_text("utf-8")
    (folder / "findings.md").write_text(f"{GENERATED}\n\nof studies that are gone")
    build(folder, parquet=False)
    assert not (folder / "rows.parquet").exists()
    assert "rows.parquet" not in (folder / "README.md").read_text("utf-8")
    assert not (folder / "findings.md").exists()
    (folder / "findings.md").write_text("mine")
    build(folder)
    assert (folder / "findings.md").read_text("utf-8") == "mine"


def test_a_full_disk_leaves_the_old_tables(cli, built, tmp_path):
    shutil.copytree(built, tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "records" / "categorical")
    with limited_file_size(2_000):
        outcome = cli("leaderboard", "build", tmp_path / "copy")
    assert outcome.code == 2
    assert outcome.err.endswith("can't be written: File too large; it is unchanged\n")
    assert files(tmp_path / "copy") == files(built)
    assert not list((tmp_path / "copy").glob(".*"))
    assert cli("leaderboard", "build", tmp_path / "copy").code == 0
    assert not (tmp_path / "copy" / "tasks" / "categorical.md").exists()


def test_a_damaged_record_is_an_error_and_left_out(cli, built, tmp_path):
    shutil.copytree(built / "records", tmp_path / "records")
    path = next((tmp_path / "records").glob("*/zero*.json"))
    path.write_text(path.read_text().replace('"zero"', '"ridge"'))
    outcome = cli("leaderboard", "build", tmp_path)
    assert outcome.code == 2
    assert "was edited" in outcome.err
    assert outcome.err.count("\n") == 1
    assert str(path) in outcome.err
    assert path.name not in (tmp_path / "rows.csv").read_text("utf-8")
    assert "least-squares-qr" in (tmp_path / "rows.csv").read_text("utf-8")


def test_tables_stay_where_most_records_lack_their_values(cli, built, tmp_path):
    copy = shutil.copytree(built, tmp_path / "copy")
    before = files(copy)
    store = RecordStore(copy / "records")
    objects = copy / "records" / "objects"
    kept = {store.folder / file.name for file in read_record(next(store.paths())).files()}
    for path in objects.rglob("*.*"):
        if path.is_file() and path not in kept:
            path.unlink()
    outcome = cli("leaderboard", "build", copy)
    assert outcome.code == 2
    assert "records can't be used, so the tables stay as they were" in " ".join(outcome.err.split())
    assert outcome.err.count("records can't be used") == 1
    assert (copy / "rows.csv").read_bytes() == (built / "rows.csv").read_bytes()
    assert {name for name in before if "objects" not in str(name)} == {
        name for name in files(copy) if "objects" not in str(name)
    }


def test_curves_of_deleted_records_are_deleted(built, tmp_path):
    shutil.copytree(built, tmp_path / "copy")
    for path in (tmp_path / "copy" / "records").glob("*/baseconv*.json"):
        path.unlink()
    build(tmp_path / "copy")
    assert not (tmp_path / "copy" / "curves.parquet").exists()
