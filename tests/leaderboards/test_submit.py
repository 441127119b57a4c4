"""`iclbench.submit`: what the command line does, from Python."""

from __future__ import annotations

import pytest

from iclbench import RecordStore, UsageError, run, submit

SMALL = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 64}


@pytest.fixture
def results(tmp_path):
    run("baseconv", **SMALL, recipe="smoke", seeds=2, out=tmp_path / "results")
    run("zero", **SMALL, out=tmp_path / "results")
    return RecordStore(tmp_path / "results")


def test_records_that_hold_are_published_and_others_named(results, tmp_path, capsys):
    boards = tmp_path / "boards"
    trained, zero = results.paths()
    zero.write_text(zero.read_text().replace("zero", "nine"))
    submitted = submit([trained, str(zero)], boards, held_out=True)
    (path,) = submitted.records
    assert path == boards / "records" / trained.relative_to(results.folder)
    assert path.with_name(f"{path.stem}.heldout.json").exists()
    (reason,) = submitted.refused
    assert f"{zero}: it was edited" in reason
    assert f"copied to {path}" in capsys.readouterr().err
    assert submit([trained], boards).records == [path]
    assert "already published: " in capsys.readouterr().err


def test_folders_of_records_are_taken(results, tmp_path):
    submitted = submit(results.folder, tmp_path / "boards")
    assert len(submitted.records) == 2
    assert submit(str(results.folder), tmp_path / "boards").records == submitted.records
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there are no records in"):
        submit([tmp_path / "empty"], tmp_path / "boards")


def test_a_file_in_the_place_of_leaderboards_is_refused(results, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file is a file: records can't be copied into it"):
        submit(list(results.paths()), tmp_path / "file")
    (tmp_path / "damaged.json").write_text("{")
    submitted = submit([tmp_path / "damaged.json"], tmp_path / "boards")
    assert submitted.records == []
    assert not (tmp_path / "boards").exists()
