"""Records: their schema is published, they can't be edited or cut unnoticed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import save

from iclbench import RecordError, RecordStore, run, verify
from iclbench.api.record import record_schema
from iclbench.files import write_atomically
from iclbench.runs.comparison import DIGITS, NEAR_FLOOR, agree
from iclbench.runs.statistics import summarize
from iclbench.runs.store import read_per_prompt, read_record

TINY = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "seeds": 2,
    "eval_prompts": 64,
}
DOCS = Path(__file__).parents[2] / "docs"


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
    with pytest.raises(RecordError, match="NaN is not JSON"):
        read_record(copied)


def test_a_field_that_is_added_later_leaves_old_records_readable(copied):
    """The id is that of the spec as it stands in the file."""
    from iclbench.api.spec import digest_of, spec_id

    content = json.loads(copied.read_text())
    del content["spec"]["eval_seed"]
    content["id"] = spec_id(content["spec"])
    del content["digest"]
    content["digest"] = digest_of(content)
    copied.write_text(json.dumps(content))
    assert read_record(copied).spec.eval_seed == 0


def test_foreign_files_are_passed_over(store, tmp_path):
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "notes.json").write_text("{")
    assert list(RecordStore(tmp_path).paths()) == []


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
        names = {check.name for check in checks}
        assert {"parameters", "squared_error mean", "floor squared_error median"} <= names
        if "prefixes" in str(path):
            assert {"prefix_error mean at 3", "floor prefix_error median at 0"} <= names
        if "baseconv" in path.name:
            assert "seed 1 squared_error q95" in names
        assert all(check.holds for check in checks)
        assert all(check.recorded == check.measured for check in checks)


def test_a_trained_record_verifies_from_its_weights_alone(copied):
    assert all(check.holds for check in verify(copied))
    (weights,) = copied.parent.glob("*.weights.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(RecordError, match="SHA-256"):
        verify(copied)


def resealed(path: Path, **changes) -> None:
    record = read_record(path)
    path.write_text(record.model_copy(update=changes).sealed().model_dump_json())


def forged(statistics, **changes):
    return {"squared_error": statistics["squared_error"].model_copy(update=changes)}


def test_a_resealed_statistic_contradicts_the_prompts_values(copied):
    """Every statistic that can be changed is noticed, the floor's and one seed's too."""
    record = read_record(copied)
    text = copied.read_text()
    seeds = [record.seeds[0].model_copy(update={"metrics": forged(record.metrics, q95=1e-9)})]
    for changes in (
        {"metrics": forged(record.metrics, mean=1e-9)},
        {"metrics": forged(record.metrics, low=1e-9)},
        {"floor": forged(record.floor, median=0.5)},
        {"seeds": [*seeds, *record.seeds[1:]]},
    ):
        resealed(copied, **changes)
        with pytest.raises(RecordError, match="its squared_error is not that of"):
            verify(copied)
        copied.write_text(text)
    resealed(copied, parameters=3)
    assert [check.name for check in verify(copied) if not check.holds] == ["parameters"]


def test_a_consistent_forgery_does_not_hold(copied):
    """Values, statistics and digests that all say the same, and are not what the model does."""
    record = read_record(copied)
    arrays = {name: v * 1e-3 for name, v in read_per_prompt(copied, record).items()}
    data = save(arrays)
    place = copied.parent / record.per_prompt.file
    place.write_bytes(data)
    values = arrays["metric/squared_error"]
    resealed(
        copied,
        metrics={"squared_error": summarize(values)},
        floor={"squared_error": summarize(arrays["floor/squared_error"][None])},
        seeds=[
            seed.model_copy(update={"metrics": {"squared_error": summarize(values[i : i + 1])}})
            for i, seed in enumerate(record.seeds)
        ],
        per_prompt=record.per_prompt.model_copy(
            update={"sha256": hashlib.sha256(data).hexdigest()}
        ),
    )
    failing = {check.name for check in verify(copied) if not check.holds}
    assert {"squared_error mean", "squared_error median", "seed 0 squared_error mean"} <= failing


def test_the_wide_tolerance_is_for_the_floor_of_the_arithmetic_alone(tmp_path):
    """With noise the floor is large: numbers of another model beside it do not hold."""
    args = {**TINY, "task_args": {"dim": 2, "examples": 4, "noise": 0.5}}
    noisy = RecordStore(tmp_path)
    ridge = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.01})
    other = run(model="ridge", **args, out=tmp_path, model_args={"ridge": 0.5})
    path = noisy.path(ridge.spec)
    resealed(
        path,
        metrics=other.metrics,
        seeds=other.seeds,
        per_prompt=other.per_prompt,
    )
    assert not all(check.holds for check in verify(path))


def test_other_evaluation_prompts_are_noticed(copied):
    record = read_record(copied)
    report = record.evaluation.model_copy(update={"digest": "0" * 64})
    resealed(copied, evaluation=report)
    with pytest.raises(RecordError, match="prompts are not those"):
        verify(copied)


def test_another_version_of_the_task_is_noticed(copied):
    record = read_record(copied)
    spec = record.spec.model_copy(update={"task_version": 99})
    resealed(copied, spec=spec, id=spec.id)
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
