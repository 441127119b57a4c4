"""Records and their files: edits, truncation and missing files are noticed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from forging import reseal

from iclbench import RecordError, RecordStore, RunError, verify
from iclbench.api.record import record_schema
from iclbench.leaderboards.reading import sound_records_of
from iclbench.runs.proofs import write_proof
from iclbench.runs.store import read_record, read_values, require_place
from iclbench.sweeps.record_paths import record_paths


def test_runs_into_a_folder_of_leaderboards_are_refused(cli, tmp_path):
    """Its readers look into `records` alone."""
    (tmp_path / "records").mkdir()
    outcome = cli("run", "--model", "zero", "--task", "gradient", "--out", tmp_path)
    assert outcome.code == 2
    assert f"{tmp_path} is a folder of leaderboards: give another folder" in outcome.err
    sweep = tmp_path / "sweep.toml"
    sweep.write_text('[[grid]]\nmodel = "zero"\ntask = "gradient"\n')
    outcome = cli("sweep", sweep, "--out", tmp_path)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "is a folder of leaderboards" in outcome.err
    search = ("--tune", "--trials", 2, "--recipe", "smoke", "--seeds", 1)
    outcome = cli("run", "--model", "lsa", "--task", "least-squares", *search, "--out", tmp_path)
    assert (outcome.code, "is a folder of leaderboards" in outcome.err) == (2, True)
    assert [*tmp_path.rglob("*.json")] == []


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_every_record_is_valid_by_the_published_schema(store):
    schema = record_schema()
    paths = list(store.paths())
    assert len(paths) == 3
    for path in paths:
        jsonschema.validate(json.loads(path.read_text()), schema)
        record = read_record(path)
        assert store.path(record.spec) == path
        assert record == record.sealed()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(parameters=0), "was edited"),
        (lambda c: c["spec"].update(recipe="paper"), "was edited"),
        (lambda c: c.update(digest="0" * 64), "was edited"),
        (lambda c: c.update(schema_version=99), "schema version 99"),
        (lambda c: c.pop("digest"), "not the record of a run"),
    ],
)
def test_an_edited_record_is_refused(copied, change, message):
    edit(copied, change)
    with pytest.raises(RecordError, match=message):
        read_record(copied)


def test_an_id_that_is_not_the_spec_s_is_refused(copied):
    from iclbench.api.spec import digest_of

    def change(content):
        content["id"] = "0" * 16
        del content["digest"]
        content["digest"] = digest_of(content)

    edit(copied, change)
    with pytest.raises(RecordError, match="its id is not its spec's"):
        read_record(copied)


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_a_truncated_record_is_refused(copied, size):
    copied.write_text(copied.read_text()[:size])
    with pytest.raises(RecordError, match="truncated"):
        read_record(copied)


def test_a_record_that_holds_nan_is_refused(copied):
    copied.write_text(copied.read_text().replace('"seconds": ', '"seconds": NaN, "was": ', 1))
    with pytest.raises(RecordError, match="not finite"):
        read_record(copied)


def test_a_record_that_nobody_could_read_is_not_written(store, tmp_path, monkeypatch):
    record = read_record(next(store.paths()))
    monkeypatch.setattr("iclbench.runs.store.MOST_RECORD_BYTES", 1000)
    with pytest.raises(RunError, match="at most 1,000 are read"):
        RecordStore(tmp_path).write(record)
    assert list(RecordStore(tmp_path).paths()) == []


def test_foreign_files_are_passed_over(store, tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "notes.json").write_text("{")
    assert list(RecordStore(tmp_path).paths()) == []


def test_a_renamed_record_is_read_and_said_to_be_one(store, tmp_path):
    folder = shutil.copytree(store.folder, tmp_path / "renamed")
    path = next(RecordStore(folder).paths())
    renamed = path.rename(path.with_name("copy (1).json"))
    assert renamed in list(RecordStore(folder).paths())
    assert renamed in record_paths([folder])
    lines: list[str] = []
    kept = sound_records_of(RecordStore(folder), lines.append)
    assert len(kept) == len(list(store.paths())) - 1
    assert lines == [f"{renamed}: the record of this run is {path.relative_to(folder)}"]


def test_a_record_has_one_place_in_any_folder(copied):
    record = read_record(copied)
    require_place(copied, record)
    require_place(Path("elsewhere", *copied.parts[-2:]), record)
    for path in (copied.with_name("copy.json"), copied.parents[1] / "other-task" / copied.name):
        with pytest.raises(RecordError, match=f"the record of this run is {record.file}"):
            require_place(path, record)
        with pytest.raises(RecordError, match="the record of this run is"):
            write_proof(path, record, record)


def test_a_missing_record_is_refused(tmp_path):
    with pytest.raises(RecordError, match="can't be read"):
        read_record(tmp_path / "nothing.json")


def test_changed_values_of_the_prompts_are_refused(copied):
    main = read_record(copied).main
    assert read_values(copied, main.values)["squared_error"].dtype == np.float64
    file = copied.parents[1] / main.values["squared_error"].name
    file.write_bytes(b"nonsense")
    with pytest.raises(RecordError, match="SHA-256"):
        read_values(copied, main.values)
    file.unlink()
    with pytest.raises(RecordError, match="can't be read"):
        verify(copied)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"digest": ' + "[" * 100_000, "nested too deeply"),
        ('{"digest": "", "schema_version": 4, "x": 1e999}', "not finite"),
        ('{"digest": "", "schema_version": [4]}', "schema version"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "not a record"),
    ],
)
def test_a_hostile_record_is_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "record.json"
    path.write_text(text, "latin-1")
    with pytest.raises(RecordError, match=message) as caught:
        read_record(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("left", [b"", b"\0" * 4096, b'{"digest": "0', b"# Notes"])
def test_what_is_left_of_a_record_can_be_made_again(tmp_path, left):
    """A crash leaves nothing, zeros or a part; any other file was no record."""
    path = tmp_path / "record.json"
    path.write_bytes(left)
    with pytest.raises(RecordError) as caught:
        read_record(path)
    assert ("`run --force` makes a record again" in str(caught.value)) == (left != b"# Notes")


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["spec"].update(task="../../../escape"),
        lambda c: c["spec"].update(model="a/b"),
        lambda c: c["plugins"][0].update(name="<script>"),
        lambda c: c["plugins"][0].update(version="1\n2"),
        lambda c: c["evaluations"].update({"../x": c["evaluations"]["main"]}),
        lambda c: c["evaluations"]["main"]["metrics"].pop("squared_error"),
        lambda c: c["evaluations"]["main"]["seeds"].pop(),
        lambda c: c["training"]["curve"].append([0.1]),
    ],
)
def test_names_that_are_not_plain_and_parts_that_do_not_fit_are_refused(copied, change):
    path = reseal(copied, change, rename=False)
    with pytest.raises(RecordError, match="not a record"):
        read_record(path)


def test_a_link_or_a_pipe_is_no_record(copied, tmp_path):
    (tmp_path / "link.json").symlink_to(copied)
    with pytest.raises(RecordError, match="is a link"):
        read_record(tmp_path / "link.json")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(RecordError, match="not a regular file"):
        read_record(tmp_path / "pipe.json")
