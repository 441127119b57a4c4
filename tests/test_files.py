"""Writing files and folders whole or not at all, and reading strict JSON."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from iclbench import UsageError
from iclbench.files import (
    STAGING,
    is_free,
    read_json,
    read_toml,
    staged,
    write_atomically,
    write_first,
    write_output,
)


def test_a_toml_file_may_start_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "file.toml"
    path.write_text('name = "µ"', "utf-8-sig")
    assert read_toml(path) == {"name": "µ"}


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


def test_an_error_names_the_file_and_not_a_temporary_one(tmp_path):
    path = tmp_path / ("n" * 250)  # fits a name, but not with what the temporary one adds
    with pytest.raises(OSError, match="too long") as caught:
        write_atomically(path, b"")
    assert caught.value.filename == str(path)
    with pytest.raises(UsageError, match=r"/n{250} can't be written: File name too long$"):
        write_output(path, b"")


@pytest.mark.parametrize("links", [True, False])
def test_of_several_writers_one_is_the_first(tmp_path, monkeypatch, links):
    """Where the file system has no hard links, the file is whole all the same."""
    if not links:

        def refused(self, target):
            raise OSError(1, "Operation not permitted")

        monkeypatch.setattr(Path, "hardlink_to", refused)
    path = tmp_path / "new" / "first"
    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(lambda i: write_first(path, bytes([i]) * 1000), range(8)))
    content = path.read_bytes()
    assert len(content) == 1000
    assert set(content) == {content[0]}
    if links:
        assert [i for i, was_first in enumerate(first) if was_first] == [content[0]]
    assert [p.name for p in path.parent.iterdir()] == ["first"]
    assert not write_first(path, b"later")
    assert path.read_bytes() == content


def test_threads_may_write_the_same_file(tmp_path):
    path = tmp_path / "file"
    texts = [f"{i}" * 1000 for i in range(10)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: write_atomically(path, texts[i % 10].encode()), range(100)))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def fill(folder, text):
    (folder / "a").mkdir(exist_ok=True)
    (folder / "a" / "page").write_text(text)
    (folder / "index").write_text(text)


def test_staged_files_replace_those_of_the_folder_at_the_end(tmp_path):
    fill(tmp_path, "old")
    (tmp_path / "mine").write_text("mine")
    with staged(tmp_path) as new:
        fill(new, "new")
        assert (tmp_path / "index").read_text() == "old"
    assert contents(tmp_path) == {"a/page": "new", "index": "new", "mine": "mine"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "index", "mine"}


def replace(folder, error=None):
    with staged(folder) as new:
        fill(new, "new")
        if error:
            raise error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_stays_as_it_was_if_its_files_cannot_be_written(tmp_path, error):
    fill(tmp_path, "old")
    refused = UsageError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(refused) as caught:
        replace(tmp_path, error)
    if refused is UsageError:
        assert str(caught.value).endswith("written: No space left on device; it is unchanged")
    assert contents(tmp_path) == {"a/page": "old", "index": "old"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", "index"}


def test_a_file_that_cannot_be_read_within_the_block_is_the_one_that_is_named(tmp_path):
    (tmp_path / "out").mkdir()
    fill(tmp_path / "out", "old")
    missing = tmp_path / "missing"
    with pytest.raises(UsageError, match=f"{missing}: No such file or directory; .*/out is unch"):
        replace(tmp_path / "out", FileNotFoundError(2, "No such file or directory", str(missing)))
    assert contents(tmp_path / "out") == {"a/page": "old", "index": "old"}


def test_a_new_folder_that_cannot_be_written_is_not_left(tmp_path):
    with pytest.raises(UsageError, match="Input/output error; it is unchanged"):
        replace(tmp_path / "new", OSError(5, "Input/output error"))
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="file can't be written"):
        replace(tmp_path / "file")


def test_a_swap_that_stops_half_way_says_so(tmp_path):
    (tmp_path / "index" / "in the way").mkdir(parents=True)
    with pytest.raises(UsageError, match="partly old, until the same command succeeds"):
        replace(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "index"}


def test_what_a_killed_process_had_staged_is_in_nobody_s_way(tmp_path):
    folder = tmp_path / "out"
    assert is_free(folder)
    old, new = folder / f"{STAGING}old", folder / f"{STAGING}new"
    for left in (old, new):
        left.mkdir(parents=True)
        (left / "data").write_text("half")
    os.utime(old, (0, 0))
    assert is_free(folder)
    with staged(folder) as fresh:
        (fresh / "a").write_text("whole")
    # That of a day ago is gone; the other may be of a process that runs.
    assert sorted(path.name for path in folder.iterdir()) == [new.name, "a"]
    assert not is_free(folder)
    assert not is_free(folder / "a")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "b": {"c": 1, "c": 1}}', "a key occurs twice"),
        ('{"a": {"b": NaN}}', "a.b: a number that is not finite"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "no JSON object"),
        ("{", "Expecting property name"),
        ('{"a": "\xe4"}', "can't decode"),
    ],
)
def test_json_is_read_strictly(tmp_path, text, problem):
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=problem):
        read_json(path, 10**6)
    path.write_text('{"a": [1, "b"]}')
    assert read_json(path, 100) == {"a": [1, "b"]}
