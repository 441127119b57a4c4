"""Records: their schema is published, they can't be edited or cut unnoticed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from iclbench import RecordError, RecordStore, run
from iclbench.files import write_atomically
from iclbench.records import read_per_prompt, read_record, record_schema
from iclbench.verify import DIGITS, NEAR_FLOOR, agree, verify

TINY = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "seeds": 2,
    "eval_prompts": 64,
}
DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> RecordStore:
    folder = tmp_path_factory.mktemp("records")
    for model in ("least-squares-qr", "baseconv"):
        run(model=model, **TINY, out=folder)
    run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, out=folder)
    return RecordStore(folder)


def test_the_published_schema_is_the_record_s():
    assert json.loads((DOCS / "record.schema.json").read_text()) == record_schema()


def test_every_record_is_valid_by_the_published_schema(store):
    schema = json.loads((DOCS / "record.schema.json").read_text())
    paths = list(store.paths())
    assert len(paths) == 3
    for path in paths:
        jsonschema.validate(json.loads(path.read_text()), schema)
        record = read_record(path)
        assert store.path(record.spec) == path
        assert record == record.sealed()


@pytest.fixture
def copied(store, tmp_path) -> Path:
    """A trained record and its files in a folder of their own."""
    path = next(p for p in store.paths() if "baseconv" in p.name)
    for file in path.parent.glob(path.stem + "*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path / path.name


def edit(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["metrics"]["squared_error"].update(mean=0.0), "was edited"),
        (lambda c: c["spec"].update(recipe="paper"), "was edited"),
        (lambda c: c.update(digest="0" * 64), "was edited"),
        (lambda c: c.update(schema_version=99), "schema version 99"),
        (lambda c: c.pop("digest"), "no record"),
    ],
)
def test_an_edited_record_is_refused(copied, change, message):
    edit(copied, change)
    with pytest.raises(RecordError, match=message):
        read_record(copied)


def test_an_id_that_is_not_the_spec_s_is_refused(copied):
    from iclbench.specs import digest_of

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


def test_a_missing_record_is_refused(tmp_path):
    with pytest.raises(RecordError, match="can't be read"):
        read_record(tmp_path / "nothing.json")


def test_changed_values_of_the_prompts_are_refused(copied):
    record = read_record(copied)
    assert read_per_prompt(copied, record)["metric/squared_error"].dtype == np.float64
    (copied.parent / record.per_prompt.file).write_bytes(b"nonsense")
    with pytest.raises(RecordError, match="SHA-256"):
        read_per_prompt(copied, record)
    (copied.parent / record.per_prompt.file).unlink()
    with pytest.raises(RecordError, match="can't be read"):
        verify(copied)


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"before")

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_solver_and_trained_records_verify(store):
    for path in store.paths():
        checks = verify(path)
        assert {check.statistic for check in checks} == {"mean", "median"}
        assert all(check.holds for check in checks)
        assert all(check.recorded == check.measured for check in checks)


def test_a_trained_record_verifies_from_its_weights_alone(copied):
    assert all(check.holds for check in verify(copied))
    weights = copied.with_suffix(".weights.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(RecordError, match="SHA-256"):
        verify(copied)


def test_a_sealed_lie_does_not_hold(copied):
    """A record resealed after its metrics were improved has a fine digest, and fails."""
    record = read_record(copied)
    better = record.metrics["squared_error"].model_copy(update={"mean": 1e-9, "median": 1e-9})
    lie = record.model_copy(update={"metrics": {"squared_error": better}}).sealed()
    copied.write_text(lie.model_dump_json())
    assert not any(check.holds for check in verify(copied))


def test_other_evaluation_prompts_are_noticed(copied):
    record = read_record(copied)
    report = record.evaluation.model_copy(update={"digest": "0" * 64})
    copied.write_text(record.model_copy(update={"evaluation": report}).sealed().model_dump_json())
    with pytest.raises(RecordError, match="prompts are not those"):
        verify(copied)


def test_another_version_of_the_task_is_noticed(copied):
    record = read_record(copied)
    spec = record.spec.model_copy(update={"task_version": 99})
    changed = record.model_copy(update={"spec": spec, "id": spec.id})
    copied.write_text(changed.sealed().model_dump_json())
    with pytest.raises(RecordError, match="version 99"):
        verify(copied)


@pytest.mark.parametrize(
    ("recorded", "measured", "floor", "holds"),
    [
        (1.0, 1.0005, None, True),
        (1.0, 1.01, None, False),
        (1.0, 1.01, 1e-13, False),
        (1e-13, 2e-13, 1e-13, True),
        (1e-13, 10 ** (-13 + 1.1 * DIGITS), 1e-13, False),
        (1e-13 * NEAR_FLOOR * 2, 1e-13 * NEAR_FLOOR * 3, 1e-13, False),
        (None, None, None, True),
        (1.0, None, None, False),
        (0.0, 0.0, 0.0, True),
        (0.0, 1.0, 0.0, False),
    ],
)
def test_the_tolerance_is_as_stated(recorded, measured, floor, holds):
    assert agree(recorded, measured, floor, 1e-3) is holds
