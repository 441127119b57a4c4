"""`iclbench.pull`: what the command line does, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from iclbench import RecordError, RecordStore, UsageError, export_task, pull, run

SMALL = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 64}


def test_a_record_is_verified_and_several_are_where_it_is_asked_for(tmp_path):
    run("zero", **SMALL, out=tmp_path / "a")
    one = pull(tmp_path / "a", tmp_path / "b")
    assert (one.folder, one.export, one.verified) == (tmp_path / "b", None, True)
    assert one.records == list(RecordStore(tmp_path / "b").paths())
    run("averaging", **SMALL, out=tmp_path / "a")
    (tmp_path / "a" / "least-squares" / "notes.json").write_text("{}")
    several = pull(str(tmp_path / "a"), tmp_path / "c")
    assert (len(several.records), several.verified) == (2, False)
    assert several.left_out == ["least-squares/notes.json"]
    assert pull(tmp_path / "a", tmp_path / "d", verify=True).verified


def test_a_path_of_two_parts_is_a_folder_though_a_repository_may_have_its_name(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    record = run("zero", **SMALL, out=Path("out/records"))
    pulled = pull(Path("out/records"), Path("b"))
    assert pulled.records == [RecordStore(Path("b")).path_of(record)]


def test_leaderboards_are_taken_as_push_takes_them(tmp_path):
    record = run("zero", **SMALL, out=tmp_path / "boards" / "records")
    pulled = pull(tmp_path / "boards", tmp_path / "b")
    assert pulled.records == [RecordStore(tmp_path / "b").path_of(record)]


def test_prompts_go_to_a_folder_of_their_own(tmp_path):
    export_task("least-squares", 16, tmp_path / "data")
    pulled = pull(tmp_path / "data", tmp_path / "copy")
    assert (pulled.records, pulled.verified) == ([], True)
    assert pulled.export.task == "least-squares"
    with pytest.raises(UsageError, match="holds files: give a new folder"):
        pull(tmp_path / "data", tmp_path / "copy")


def test_nothing_is_copied_where_anything_is_wrong(tmp_path):
    record = run("zero", **SMALL, out=tmp_path / "a")
    path = RecordStore(tmp_path / "a").path_of(record)
    path.write_text(path.read_text().replace('"zero"', '"nine"'))
    with pytest.raises(RecordError, match="it was edited"):
        pull(tmp_path / "a", tmp_path / "b")
    with pytest.raises(UsageError, match="has no iclbench records"):
        pull(tmp_path / "a" / "objects", tmp_path / "b")
    with pytest.raises(RecordError, match=r"the limit is 1 \(--max-size\)"):
        pull(tmp_path / "a", tmp_path / "b", max_size=1e-9)
    assert not (tmp_path / "b").exists()
