"""Objects: named by content, shared, checked before use, collected when nothing names them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import zstandard
from small_runs import TINY

from iclbench import RecordError, RecordStore, RunError, run
from iclbench.api.results import FileReference
from iclbench.runs.objects import Objects, pack, unpack
from iclbench.runs.store import read_values


@pytest.fixture
def objects(tmp_path) -> Objects:
    return Objects(tmp_path)


@pytest.mark.parametrize("shape", [(2, 64), (1, 5, 3), (2, 0), ()])
def test_an_array_is_read_as_it_was_written(objects, shape):
    values = np.random.default_rng(0).normal(size=shape)
    values = np.where(np.abs(values) > 2, np.nan, values)
    reference = objects.write_arrays({"metric": values})["metric"]
    read = objects.read_array(reference)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read, values)
    assert objects.write_arrays({"other": values})["other"] == reference
    assert unpack(pack(values), shape).flags.writeable


def test_records_share_the_floor(tmp_path):
    first = run(model="zero", **TINY, out=tmp_path)
    second = run(model="averaging", **TINY, out=tmp_path)
    assert first.main.floor.values == second.main.floor.values
    assert len(list(tmp_path.glob("objects/*/*"))) == 3


def frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def stored(objects: Objects, data: bytes, shape: tuple[int, ...] | None = (2,)) -> FileReference:
    """A file with a sound digest, whatever its content."""
    reference = FileReference(
        sha256=hashlib.sha256(data).hexdigest(), format="f64.zst", shape=shape
    )
    objects.path(reference).parent.mkdir(parents=True, exist_ok=True)
    objects.path(reference).write_bytes(data)
    return reference


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (b"nonsense", (2,)),
        (frame(b"short"), (2,)),
        (frame(b"0" * 16) + b"more", (2,)),
        (frame(b"0" * 16), None),
        (frame(b"0" * 16), (-1, -2)),
        (frame(b"0" * 16), (2**40,)),
        (frame(b"0" * 10_000_000), (2,)),
        (zstandard.ZstdCompressor(write_content_size=False).compress(b"0" * 10**7), (2,)),
    ],
)
def test_an_object_that_is_no_such_array_is_refused(objects, data, shape):
    reference = stored(objects, data, shape)
    with pytest.raises(RecordError):
        objects.read_array(reference)


def test_too_many_values_are_not_written(objects):
    with pytest.raises(RunError, match="too many"):
        objects.write_arrays({"metric": np.broadcast_to(0.0, 2**27 + 1)})
    half = np.broadcast_to(0.0, 2**26 + 1)
    with pytest.raises(RunError, match="too many"):
        objects.write_arrays({"metric": half, "other": half})


def test_links_pipes_and_large_files_are_refused(objects, tmp_path):
    data = b"secret"
    reference = FileReference(sha256=hashlib.sha256(data).hexdigest(), format="jsonl")
    path = objects.path(reference)
    with pytest.raises(RecordError, match="can't be read"):
        objects.read(reference)
    path.parent.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_bytes(data)
    path.symlink_to(secret)
    with pytest.raises(RecordError, match="is a link"):
        objects.read(reference)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(RecordError, match="not a regular file"):
        objects.read(reference)
    path.unlink()
    path.write_bytes(data)
    assert objects.read(reference) == data
    with pytest.raises(RecordError, match="at most 5"):
        objects.read(reference, most=5)
    shutil.move(path.parent, tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RecordError, match="is a link"):
        objects.read(reference)


@pytest.mark.parametrize("name", ["../../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n", ""])
def test_a_reference_cannot_name_a_path(name):
    with pytest.raises(ValueError, match="sha256"):
        FileReference(sha256=name, format="jsonl")


def age(folder: Path) -> None:
    for path in folder.glob("objects/*/*"):
        os.utime(path, (0, 0))


def test_replacing_a_record_deletes_what_nothing_else_names(tmp_path):
    store = RecordStore(tmp_path)
    first = run(model="baseconv", **TINY, out=tmp_path)
    other = run(model="zero", **TINY, out=tmp_path)
    age(tmp_path)
    main = first.main
    values = read_values(store.path(first.spec), main.values)["squared_error"]
    changed = main.model_copy(
        update={"values": store.objects.write_arrays({"squared_error": 2 * values})}
    )
    store.write(first.model_copy(update={"evaluations": {"main": changed}}))
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("objects/*/*")}
    named = {reference.name for reference in [*other.files(), *first.files()]}
    assert named - left == {main.values["squared_error"].name}


def test_files_that_a_run_has_just_written_are_not_collected(objects, tmp_path):
    (reference,) = objects.write_arrays({"metric": np.zeros(3)}).values()
    assert objects.collect() == []
    age(tmp_path)
    # Another run stores the same values, and has not written its record yet.
    objects.write_arrays({"metric": np.zeros(3)})
    assert objects.collect() == []
    age(tmp_path)
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "damaged.json").write_text(f'{{"sha256": "{reference.sha256}", ')
    assert objects.collect() == []
    (tmp_path / "task" / "damaged.json").unlink()
    assert objects.collect() == [objects.path(reference)]
