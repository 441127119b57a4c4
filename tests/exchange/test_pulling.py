"""What is hostile, damaged or forged is refused in one line, and nothing of it stays."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from fake_hub import Repository
from forging import with_values

from iclbench import RecordError, RecordStore, UsageError
from iclbench.api.spec import digest_of
from iclbench.exchange.hub import HubFile
from iclbench.exchange.listing import listing, written_by_iclbench
from iclbench.exchange.pulling import pull_records


@pytest.fixture
def published(hub, made_once):
    """The records of a folder as a data set of somebody else."""
    files = {p.relative_to(made_once).as_posix(): p.read_bytes()
             for p in made_once.rglob("*") if p.is_file()}  # fmt: skip
    hub.repositories["dataset", "eve/board"] = Repository(files=files)
    return hub.repositories["dataset", "eve/board"]


class Listed:
    """A source of which only the names count."""

    name = "eve/board"

    def __init__(self, *paths):
        self.paths = paths

    def entries(self):
        return [HubFile(path, 1) for path in self.paths]


@pytest.mark.parametrize(
    "path",
    ["../evil.json", "a/../../evil.json", "/etc/evil.json", "a//b.json", "./a.json", "a\\b.json",
     "C:evil.json", "a/\x1b[2J.json", "a\nb", "a/" + "b" * 600, ""],
)  # fmt: skip
def test_a_path_that_leads_outside_refuses_everything(path):
    with pytest.raises(RecordError, match="not a plain path in it"):
        listing(Listed("README.md", path))


def test_files_of_other_forms_are_left_where_they_are():
    other = ["README.md", "setup.py", "a/b/c-0123456789abcdef.json", "objects/ab/evil.pkl",
             f"objects/ab/{'0' * 64}.pkl", "read/zero.json", ".gitattributes"]  # fmt: skip
    found = listing(Listed(*other, "read/zero-0123456789abcdef.json"))
    assert [entry.path for entry in found.records] == ["read/zero-0123456789abcdef.json"]
    assert found.objects == {}
    assert not written_by_iclbench("setup.py")


def test_records_under_other_names_are_named_where_there_are_no_others(tmp_path):
    source = Listed("read/mine.json", "README.md")
    with pytest.raises(UsageError, match=r"has no iclbench records; .*: read/mine\.json"):
        pull_records(source, listing(source), tmp_path / "out", measure=False, most=1e9)


def test_a_repository_that_names_a_file_outside_is_refused(published, refused):
    published.files["../../evil.json"] = b"{}"
    refused("not a plain path in it")


def test_only_what_records_name_is_pulled(published, cli, tmp_path):
    published.files["setup.py"] = b"raise SystemExit"
    published.files[f"objects/00/{'0' * 64}.jsonl"] = b"{}"
    assert cli("pull", "datasets/eve/board", "--out", tmp_path / "back").code == 0
    got = {p.relative_to(tmp_path / "back").as_posix()
           for p in (tmp_path / "back").rglob("*") if p.is_file()}  # fmt: skip
    assert got == set(published.files) - {"setup.py", f"objects/00/{'0' * 64}.jsonl"}


def test_a_record_that_was_renamed_is_named(published, cli, tmp_path):
    _, content = record_of(published)
    published.files["least-squares/copy (1).json"] = json.dumps(content).encode()
    published.files["tunings/0123456789abcdef.json"] = b"{}"
    outcome = cli("pull", "datasets/eve/board", "--out", tmp_path / "back")
    assert outcome.code == 0
    assert outcome.err.count("left out: ") == 1
    assert "left out: least-squares/copy (1).json, which is not named like a record" in outcome.err


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
    refused("which a record refers to")


@pytest.mark.parametrize(
    ("ending", "size", "message"),
    [(".json", 2**30, "the limit is"), (".f64.zst", 2**30, "the limit is"),
     (".safetensors", 2**40, "(--max-size)")],
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
    refused("as listed")


def test_the_size_of_all_files_is_bounded(published, refused):
    refused("the limit is 10,000 (--max-size)", "--max-size", "0.00001")


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


def test_what_this_machine_has_proved_is_not_replaced(published, cli, tmp_path):
    out = tmp_path / "back"
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    path, _ = record_of(published)
    assert cli("verify", out / path, "--write").code == 0
    proved = (out / path).read_bytes()
    assert json.loads(proved)["proof"]["kind"] == "evaluated"
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    assert (out / path).read_bytes() == proved


def test_a_record_that_was_trained_again_is_the_author_s_own(published, cli, tmp_path):
    out = tmp_path / "back"
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    path, content = record_of(published)
    mine = (out / path).read_bytes()
    proof = {"kind": "retrained", "same_bits": True, "created": "2026-11-01T00:00:00+00:00",
             "environment": content["environment"], "plugins": content["plugins"]}  # fmt: skip
    again = forged(content, "created", "2026-11-01T00:00:00+00:00")
    published.files[path] = json.dumps(forged(again, "proof", proof)).encode()
    assert cli("pull", "datasets/eve/board", "--out", out).code == 0
    assert (out / path).read_bytes() == mine


@pytest.mark.parametrize(
    ("kind", "options", "stays"),
    [("retrained", (), False), ("evaluated", (), False), ("evaluated", ("--verify",), True)],
)
def test_a_proof_stays_only_where_it_was_seen_to_hold(
    published, cli, tmp_path, kind, options, stays
):
    path, content = record_of(published)
    assert content["proof"] is None
    proof = {
        "kind": kind,
        "created": "2026-11-01T00:00:00+00:00",
        "same_bits": True if kind == "retrained" else None,
        "environment": content["environment"],
        "plugins": content["plugins"],
    }
    published.files[path] = json.dumps(forged(content, "proof", proof)).encode()
    out = tmp_path / "back"
    for _ in range(2):
        assert cli("pull", "datasets/eve/board", "--out", out, *options).code == 0
        assert (json.loads((out / path).read_text())["proof"] is not None) == stays


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
