"""What is hostile, damaged or forged is refused in one line, and nothing of it stays."""

from __future__ import annotations

import hashlib
import io
import json
import os

import numpy as np
import pyarrow as pa
import pytest
from fake_hub import Repository
from forging import with_values
from pyarrow import parquet

from iclbench import RecordError, RecordStore
from iclbench.api.spec import digest_of
from iclbench.exchange.hub import Entry
from iclbench.exchange.pulling import listing, written_by_iclbench


@pytest.fixture
def published(hub, made_once):
    """The records of a folder as a data set of somebody else."""
    files = {p.relative_to(made_once).as_posix(): p.read_bytes()
             for p in made_once.rglob("*") if p.is_file()}  # fmt: skip
    hub.repositories["dataset", "eve/board"] = Repository(files=files)
    return hub.repositories["dataset", "eve/board"]


@pytest.fixture
def refused(cli, tmp_path):
    """Pull, and check that it is refused in one line and leaves nothing."""

    def pull(message, *words, source="datasets/eve/board", code=2):
        out = tmp_path / "back"
        before = set(tmp_path.rglob("*"))
        outcome = cli("pull", source, "--out", out, *words)
        assert (outcome.code, outcome.err.count("\n")) == (code, 1), outcome.err
        assert message in outcome.err
        left = {path for path in tmp_path.rglob("*") if path.is_file()} - before
        assert {path.name for path in left} <= {"harnesses.json"}

    return pull


class Listed:
    """A source of which only the names count."""

    name = "eve/board"

    def __init__(self, *paths):
        self.paths = paths

    def entries(self):
        return [Entry(path, 1) for path in self.paths]


@pytest.mark.parametrize(
    "path",
    ["../evil.json", "a/../../evil.json", "/etc/evil.json", "a//b.json", "./a.json", "a\\b.json",
     "C:evil.json", "a/\x1b[2J.json", "a\nb", "a/" + "b" * 600, ""],
)  # fmt: skip
def test_a_path_that_leads_outside_refuses_everything(path):
    with pytest.raises(RecordError, match="leads outside"):
        listing(Listed("README.md", path))


def test_files_of_other_forms_are_left_where_they_are():
    other = ["README.md", "setup.py", "a/b/c-0123456789abcdef.json", "objects/ab/evil.pkl",
             f"objects/ab/{'0' * 64}.pkl", "read/zero.json", ".gitattributes"]  # fmt: skip
    found = listing(Listed(*other, "read/zero-0123456789abcdef.json"))
    assert [entry.path for entry in found.records] == ["read/zero-0123456789abcdef.json"]
    assert found.objects == {}
    assert not written_by_iclbench("setup.py")


def test_a_repository_that_names_a_file_outside_is_refused(published, refused):
    published.files["../../evil.json"] = b"{}"
    refused("leads outside")


def test_only_what_records_name_is_pulled(published, cli, tmp_path):
    published.files["setup.py"] = b"raise SystemExit"
    published.files[f"objects/00/{'0' * 64}.jsonl"] = b"{}"
    assert cli("pull", "datasets/eve/board", "--out", tmp_path / "back").code == 0
    got = {p.relative_to(tmp_path / "back").as_posix()
           for p in (tmp_path / "back").rglob("*") if p.is_file()}  # fmt: skip
    assert got == set(published.files) - {"setup.py", f"objects/00/{'0' * 64}.jsonl"}


def forged(content, place, value):
    """The record with another value at a place, and a digest that fits."""
    *parents, last = place.split(".")
    inner = content
    for name in parents:
        inner = inner[name]
    assert inner[last] != value
    inner[last] = value
    content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
    return content


def record_of(published, model="zero"):
    (path,) = [p for p in published.files if p.startswith(f"least-squares/{model}-")]
    return path, json.loads(published.files[path])


def test_a_record_that_was_edited_is_refused(published, refused):
    path, content = record_of(published)
    content["created"] = "never"
    published.files[path] = json.dumps(content).encode()
    refused("it was edited")


def test_a_record_under_another_name_is_refused(published, refused):
    path, _ = record_of(published)
    published.files["least-squares/best-0123456789abcdef.json"] = published.files.pop(path)
    refused("the record of this run is least-squares/zero-")


def test_a_forged_record_is_refused_when_it_is_verified(published, refused):
    path, content = record_of(published)
    published.files[path] = json.dumps(forged(content, "parameters", 7)).encode()
    refused("parameters", "--verify")


def test_forged_values_are_refused(published, refused):
    path, content = record_of(published)
    content = forged(content, "evaluations.main.metrics.squared_error.mean", 1e-9)
    published.files[path] = json.dumps(content).encode()
    refused("squared_error", "--verify")


def test_better_values_with_the_statistics_that_follow_are_refused(results, refused):
    (path,) = (results / "least-squares").glob("zero-*.json")
    with_values(path, {"squared_error": np.full((1, 64), 1e-9)})
    refused("squared_error", "--verify", source=str(results))


def test_an_object_that_was_changed_is_refused(published, refused):
    (path,) = [p for p in published.files if p.endswith(".safetensors")]
    published.files[path] = bytes(len(published.files[path]))
    refused("was changed: its SHA-256 is not its name")


def test_an_object_that_is_missing_is_refused(published, refused):
    (path,) = [p for p in published.files if p.endswith(".safetensors")]
    del published.files[path]
    refused("which a record names")


@pytest.mark.parametrize(
    ("ending", "size", "message"),
    [(".json", 2**30, "bytes; at most"), (".f64.zst", 2**30, "bytes; at most"),
     (".safetensors", 2**40, "are pulled (--max-size)")],
)  # fmt: skip
def test_a_huge_file_is_refused_before_it_is_read(published, hub, refused, ending, size, message):
    path = next(p for p in published.files if p.endswith(ending))
    published.sizes[path] = size
    refused(message)
    assert not [asked for _, asked, _ in hub.requests if asked.endswith(path)]


@pytest.mark.parametrize("ending", [".json", ".safetensors"])
def test_a_file_that_never_ends_is_left(published, refused, ending):
    published.endless.add(next(p for p in published.files if p.endswith(ending)))
    refused("has more bytes")


def test_a_file_that_ends_early_is_refused(published, refused):
    path, _ = record_of(published)
    published.sizes[path] = len(published.files[path]) + 1
    refused("bytes; ")


def test_the_size_of_all_files_is_bounded(published, refused):
    refused("are pulled (--max-size)", "--max-size", "0.00001")


def test_a_record_that_is_there_already_is_never_replaced(published, cli, tmp_path):
    out = tmp_path / "back"
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    path, content = record_of(published)
    mine = (out / path).read_bytes()
    published.files[path] = json.dumps(forged(content, "created", "2020-01-01")).encode()
    outcome = cli("pull", "datasets/eve/board", "--out", out)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "another record of this run" in outcome.err
    assert (out / path).read_bytes() == mine
    assert len(list(RecordStore(out).paths())) == 2


# Folders


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_in_a_folder_is_refused(results, refused, tmp_path, what):
    if not hasattr(os, "symlink"):
        pytest.skip("no links here")
    target = tmp_path.parent if what == "folder" else "/etc/hostname"
    (results / "least-squares" / "link-0123456789abcdef.json").symlink_to(target)
    refused("is a link", source=str(results))


def test_a_pipe_in_a_folder_is_not_waited_for(results, refused):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(results / "least-squares" / "pipe-0123456789abcdef.json")
    refused("pipe-0123456789abcdef.json", source=str(results))


# A task's prompts


@pytest.fixture
def prompts(hub, cli, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "out"
    assert cli("export", "--task", "read", "--prompts", 3, folder).code == 0
    files = {p.relative_to(folder).as_posix(): p.read_bytes()
             for p in folder.rglob("*") if p.is_file()}  # fmt: skip
    hub.repositories["dataset", "eve/read"] = Repository(files=files)
    return files


def rewrite(prompts, /, **changes):
    prompts["export.json"] = json.dumps(json.loads(prompts["export.json"]) | changes).encode()


def test_prompts_that_were_changed_are_refused(prompts, refused):
    prompts["data/test.parquet"] = prompts["data/test.parquet"][:-1] + b"x"
    refused("was changed", source="datasets/eve/read")


def test_prompts_that_are_not_those_of_the_task_are_refused(
    prompts, refused, cli, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("other") / "out"
    assert cli("export", "--task", "read", "--prompts", 3, "--seed", 1, folder).code == 0
    data = (folder / "data" / "test.parquet").read_bytes()
    files = json.loads(prompts["export.json"])["files"]
    files[0] |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    prompts["data/test.parquet"] = data
    rewrite(prompts, files=files)
    refused("is not what its task gives", source="datasets/eve/read")
    rewrite(prompts, seed=2)
    refused("make other prompts", source="datasets/eve/read")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": [{"path": "../../evil.parquet"}]}, "files.0"),
        ({"task": "nothing"}, "unknown task"),
        ({"task_args": {"dim": 10**9}}, "task read"),
        ({"prompts": 10**12}, "rows for 1,000,000,000,000 prompts"),
        ({"summary": "\x1b[2J"}, "invisible characters"),
        ({"files": []}, "files"),
        # What is not there is not made again.
        ({"prompts": 10**7}, "data/test.parquet has 3 rows for 10,000,000 prompts"),
    ],
)
def test_a_hostile_document_is_refused(prompts, refused, changes, message):
    rewrite(prompts, **changes)
    refused(message, source="datasets/eve/read")


def test_two_files_of_one_name_are_refused(prompts, refused):
    rewrite(prompts, files=json.loads(prompts["export.json"])["files"] * 2)
    refused("two files have one path", source="datasets/eve/read")


def test_a_number_that_is_missing_is_refused(prompts, refused):
    table = parquet.read_table(io.BytesIO(prompts["data/test.parquet"]))
    target = table["target"].to_pylist()
    target[1] = None
    columns = table.set_column(
        table.column_names.index("target"), table.schema.field("target"),
        pa.array(target, table.schema.field("target").type),
    )  # fmt: skip
    file = io.BytesIO()
    parquet.write_table(columns, file)
    prompts["data/test.parquet"] = file.getvalue()
    files = json.loads(prompts["export.json"])["files"]
    files[0] |= {"sha256": hashlib.sha256(file.getvalue()).hexdigest(),
                 "bytes": len(file.getvalue())}  # fmt: skip
    rewrite(prompts, files=files)
    refused("target lacks some of its numbers", source="datasets/eve/read")


def test_no_limit_is_no_limit(prompts, cli, tmp_path):
    outcome = cli("pull", "datasets/eve/read", "--out", tmp_path / "out", "--max-size", "inf")
    assert outcome.code == 0


def test_a_folder_with_other_files_is_left_alone(prompts, cli, tmp_path):
    (tmp_path / "thesis.txt").write_text("ten years")
    outcome = cli("pull", "datasets/eve/read", "--out", tmp_path)
    assert outcome.code == 2
    assert "holds files" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["thesis.txt"]
