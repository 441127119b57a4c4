"""What is pushed, and where."""

from __future__ import annotations

import json

import pytest
import yaml

from iclbench import RecordError, export_task, run
from iclbench.exchange.cards import front_matter
from iclbench.exchange.packing import pack


def fail(line):
    raise AssertionError(line)


def test_a_damaged_record_is_left_out_and_reported(cli, results, tmp_path):
    (damaged,) = (results / "least-squares").glob("zero-*.json")
    damaged.write_text(damaged.read_text().replace("float32", "float64"))
    outcome = cli("push", results, "--to", tmp_path / "copy")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "it was edited" in outcome.err
    assert [path.name[:4] for path in (tmp_path / "copy" / "least-squares").iterdir()] == ["tran"]


def test_where_no_record_is_sound_each_reason_is_reported(cli, results, tmp_path):
    for path in (results / "least-squares").glob("*.json"):
        path.write_text(path.read_text().replace("float32", "float64"))
    outcome = cli("push", results, "--to", tmp_path / "copy")
    assert (outcome.code, outcome.err.count("it was edited")) == (2, 2)
    assert "there are no sound records" in outcome.err


def test_a_record_without_one_of_its_files_is_refused(trained, results):
    for path in (results / "objects").glob("*/*.safetensors"):
        path.unlink()
    with pytest.raises(RecordError, match="can't be read"):
        pack(trained, fail)


def test_published_leaderboards_are_found_below_their_folder(results, tmp_path):
    (tmp_path / "boards").mkdir()
    results.rename(tmp_path / "boards" / "records")
    package = pack(tmp_path / "boards", fail)
    assert package.kind == "dataset"
    assert package.title == "2 records on 1 board of least-squares"
    assert sum(path.startswith("least-squares/") for path in package.files) == 2


def test_the_folder_of_one_task_is_told_from_one_without_records(cli, results, tmp_path):
    outcome = cli("push", results / "least-squares", "--to", tmp_path / "pushed")
    assert outcome.code == 2
    assert "holds the records of one task: give" in outcome.err


def test_an_unknown_user_is_one_line(cli, results):
    outcome = cli("push", results, "--to", "~nobody-of-this-name/pushed")
    assert outcome.code == 2
    assert "there is no such user" in outcome.err


def test_a_task_restricts_a_folder(cli, results, tmp_path):
    run("zero", "least-squares-prefixes", eval_prompts=8, out=results)
    every, restricted = pack(results, fail), pack(results, fail, "least-squares")
    tasks = [{path.partition("/")[0] for path in p.files if path.count("/") == 1}
             for p in (every, restricted)]  # fmt: skip
    assert {"least-squares", "least-squares-prefixes"} <= tasks[0]
    assert "least-squares-prefixes" not in tasks[1]
    assert "least-squares" in tasks[1]
    outcome = cli("push", results, "--task", "least-square", "--to", tmp_path / "copy")
    assert outcome.code == 2
    assert "unknown task of these records 'least-square'; did you mean" in outcome.err
    assert not (tmp_path / "copy").exists()


def test_a_solver_has_a_card_and_no_weights(results):
    (path,) = (results / "least-squares").glob("zero-*.json")
    package = pack(path, fail)
    assert "model.safetensors" not in package.files
    assert "has no weights" in package.files["README.md"].decode()


def test_the_front_matter_of_a_card_is_what_yaml_reads():
    facts = {"pretty_name": "𝔽₂ parity: yes", "value": 1e-05, "tags": ["a", "b"]}
    assert yaml.safe_load(front_matter(facts).removeprefix("---\n").removesuffix("---\n")) == facts


def test_many_files_are_shown_as_folders_unless_all_are_asked_for(
    cli, results, tmp_path, monkeypatch
):
    monkeypatch.setattr("iclbench.cli.push.MOST_SHOWN", 5)
    outcome = cli("push", results, "--to", tmp_path / "copy")
    assert outcome.code == 0
    assert "least-squares/ (2 files; --all shows them)" in outcome.out
    shown = [line for line in outcome.out.splitlines() if line.startswith("  add ")]
    assert len(shown) == 5
    outcome = cli("push", results, "--to", tmp_path / "copy2", "--all")
    files = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert sum(line.startswith("  add ") for line in outcome.out.splitlines()) == len(files) == 9


def test_a_task_restricts_no_export(cli, tmp_path):
    folder = tmp_path / "a b"
    assert cli("export", "--task", "read", "--prompts", 2, folder).code == 0
    outcome = cli("push", folder, "--task", "read", "--to", tmp_path / "copy")
    assert outcome.code == 2
    assert "--task works only with a folder of records" in outcome.err
    pushed = cli("push", folder, "--to", tmp_path / "c d").out
    assert f"iclbench pull '{tmp_path}/c d' --out NEW reads" in pushed


def test_an_export_that_was_changed_is_refused(cli, tmp_path):
    folder = tmp_path / "out"
    assert cli("export", "--task", "read", "--prompts", 2, folder).code == 0
    assert json.loads((folder / "export.json").read_text())["prompts"] == 2
    path = folder / "data" / "test.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    outcome = cli("push", folder, "--to", tmp_path / "copy")
    assert outcome.code == 2
    assert "was changed" in outcome.err


def test_the_weights_of_a_record_are_never_held_whole(trained, tmp_path, cli, monkeypatch):
    package = pack(trained, fail)
    assert (
        b"".join(package.chunks("model.safetensors"))
        == package.files["model.safetensors"].read_bytes()
    )
    # As if every file were larger than what is read at once.
    monkeypatch.setattr("iclbench.exchange.packing.CHUNK", 1000)
    assert {len(chunk) <= 1000 for chunk in package.chunks("model.safetensors")} == {True}
    monkeypatch.setattr(type(package.files["model.safetensors"]), "read_bytes", fail)
    monkeypatch.setattr("iclbench.runs.objects.read_regular_file", lambda *_: fail("read whole"))
    assert pack(trained, fail).files.keys() == package.files.keys()
    assert cli("push", trained, "--to", tmp_path / "copy").code == 0


def test_one_limit_holds_for_every_file_of_a_package(results, monkeypatch):
    export_task("read", 2, results / "out")
    package = pack(results / "out", fail)
    monkeypatch.setattr("iclbench.exchange.packing.MOST_FILE_BYTES", 100)
    with pytest.raises(RecordError, match="at most 100 are read"):
        pack(results / "out", fail)
    with pytest.raises(RecordError, match="at most 100 are read"):
        list(package.chunks("data/test.parquet"))


# The hub's client uses a parameter that its HTTP library is about to rename.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_push_deletes_nothing_that_no_push_wrote(cli, hub, results, tmp_path):
    """Many repositories have files of these names."""
    cli("push", results, "--to", "ann/board", "--yes")
    pushed = hub.repositories["dataset", "ann/board"]
    names = ("data/train-00000-of-00001.parquet", "data/test.parquet", "croissant.json")
    theirs = dict.fromkeys(names, b"the owner's")
    for name in [*pushed.files]:
        del pushed.files[name]
    pushed.files |= {**theirs, "spec.json": b"{}", "model.safetensors": b"weights"}
    outcome = cli("push", results, "--to", "ann/board", "--yes")
    assert outcome.code == 0, outcome.err
    assert "deleted" not in outcome.out
    assert {**theirs, "spec.json": b"{}"}.items() <= pushed.files.items()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_damaged_record_deletes_no_sound_copy_and_is_named_before_the_upload(cli, hub, results):
    cli("push", results, "--to", "ann/board", "--yes")
    pushed = hub.repositories["dataset", "ann/board"]
    before = dict(pushed.files)
    (damaged,) = (results / "least-squares").glob("zero-*.json")
    damaged.write_text(damaged.read_text()[:1000])
    refused = cli("push", results, "--to", "ann/board")  # asks, and nobody answers
    assert refused.code == 2
    assert f"{damaged.name}: it is truncated" in refused.err
    outcome = cli("push", results, "--to", "ann/board", "--yes")
    assert outcome.code == 2
    assert "delete" not in outcome.out
    assert pushed.files[f"least-squares/{damaged.name}"] == before[f"least-squares/{damaged.name}"]
    assert set(before) <= set(pushed.files)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_files_that_are_there_are_shown_as_replaced(cli, hub, trained):
    cli("push", trained, "--to", "ann/tiny", "--yes")
    pushed = hub.repositories["model", "ann/tiny"]
    pushed.files = {"README.md": b"the owner's"}
    lines = cli("push", trained, "--to", "ann/tiny", "--yes").out.splitlines()
    verbs = {line.split()[-1]: line.split()[0] for line in lines if line.startswith("  ")}
    assert verbs.pop("README.md") == "replace"
    assert set(verbs.values()) == {"add"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_busy_hub_is_asked_again(cli, hub, trained, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr("iclbench.exchange.hub.time.sleep", pauses.append)
    cli("push", trained, "--to", "ann/tiny", "--yes")
    # The last ones come first. What is left of a limit says nothing about another error.
    hub.busy = [
        (503, {"RateLimit": '"api";r=99;t=300'}),
        (429, {"RateLimit": '"api";r=0;t=42'}),
        (500, {"Retry-After": "17"}),
    ]
    waited = cli("pull", "ann/tiny", "--out", tmp_path / "a", "--no-verify")
    assert waited.code == 0
    # In slices of a second, after which a reader may have stopped: 17, 43, and the growing pause.
    assert 61 <= len(pauses) <= 64
    assert "asks to wait 17 s" in waited.err
    hub.busy = [(503, {})] * 500
    outcome = cli("pull", "ann/tiny", "--out", tmp_path / "b", "--no-verify")
    assert (outcome.code, "can't be read: HTTP 503" in outcome.err) == (1, True)
    assert not (tmp_path / "b").exists()


def test_an_edited_description_of_a_task_goes_nowhere(cli, tmp_path, monkeypatch):
    """Other programs check the digests that it holds."""
    monkeypatch.chdir(tmp_path)
    assert cli("export", "--task", "read", "--prompts", 5, "out").code == 0
    whole = {n: (tmp_path / "out" / n).read_bytes() for n in ("croissant.json", "README.md")}
    for name, content in whole.items():
        (tmp_path / "out" / name).write_bytes(content.replace(b"read", b"write"))
    pushed = cli("push", "./out", "--to", "./pushed")
    assert "iclbench pull ./pushed --out NEW" in pushed.out
    for name, content in whole.items():
        assert (tmp_path / "pushed" / name).read_bytes() == content
        (tmp_path / "pushed" / name).write_bytes(content.replace(b"read", b"write"))
    assert cli("pull", "./pushed", "--out", "back").code == 0
    for name, content in whole.items():
        assert (tmp_path / "back" / name).read_bytes() == content
