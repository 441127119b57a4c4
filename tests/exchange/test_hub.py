"""Pushing to and pulling from a stand-in of the hub."""

from __future__ import annotations

import io
import json
import sys

import pytest
import yaml
from fake_hub import TOKEN, Repository
from safetensors.torch import load

from iclbench import RunError
from iclbench.exchange.hub import Hub as HubClient
from iclbench.exchange.hub import _contains
from iclbench.exchange.packing import pack
from iclbench.runs.heldout import held_out_path, read_held_out, write_held_out
from iclbench.runs.heldout_evaluation import evaluate_held_out
from iclbench.runs.store import read_record

# The hub's client uses a parameter that its HTTP library is about to rename.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_a_record_becomes_a_model_repository_and_comes_back(cli, hub, trained, tmp_path):
    outcome = cli("push", trained, "--to", "ann/tiny", "--yes")
    assert outcome.code == 0, outcome.err
    pushed = hub.repositories["model", "ann/tiny"]
    assert len(pushed.commits) == 1
    assert not pushed.private
    place = f"least-squares/{trained.name}"
    assert {"README.md", "model.safetensors", "spec.json", place} <= set(pushed.files)
    assert pushed.files[place] == trained.read_bytes()
    assert {name.split("/")[0] for name in load(pushed.files["model.safetensors"])} == {"0", "1"}
    record = json.loads(trained.read_text())
    assert json.loads(pushed.files["spec.json"]) == record["spec"]
    card = pushed.files["README.md"].decode()
    assert record["command"] in card
    _, head, _ = card.split("---\n", 2)
    (metric,) = yaml.safe_load(head)["model-index"][0]["results"][0]["metrics"]
    mean = record["evaluations"]["main"]["metrics"]["squared_error"]["mean"]
    assert metric == {"type": "squared_error", "name": "squared_error", "value": mean}
    # What was shown is what was uploaded.
    shown = {line.split()[-1] for line in outcome.out.splitlines() if line.startswith("  add ")}
    assert shown == set(pushed.files)

    outcome = cli("pull", "ann/tiny", "--out", tmp_path / "back")
    assert (outcome.code, "1 record, verified" in outcome.out) == (0, True), outcome.err
    assert (tmp_path / "back" / place).read_bytes() == trained.read_bytes()
    assert cli("verify", tmp_path / "back").code == 0
    assert not [p for p in (tmp_path / "back").iterdir() if p.name.startswith(".")]


def test_a_folder_becomes_a_results_data_set_in_one_commit(cli, hub, results, tmp_path):
    from pyarrow import parquet

    refused = cli("push", results, "--to", "./copy", "--yes", "--private")
    assert refused.code == 2
    assert "--private is for repositories of the hub, and ./copy is a folder" in refused.err
    outcome = cli("push", results, "--to", "ann/board", "--yes", "--private")
    assert outcome.code == 0, outcome.err
    pushed = hub.repositories["dataset", "ann/board"]
    assert len(pushed.commits) == 1
    assert pushed.private
    rows = parquet.read_table(io.BytesIO(pushed.files["rows.parquet"])).to_pylist()
    assert [row["model"] for row in rows] == ["transformer", "zero"]
    card = pushed.files["README.md"].decode()
    assert "| transformer " in card
    raw = {path for path in pushed.files if path.startswith("least-squares/")}
    assert raw == {f"least-squares/{p.name}" for p in (results / "least-squares").iterdir()}
    outcome = cli("pull", "datasets/ann/board", "--out", tmp_path / "back")
    assert outcome.code == 0, outcome.err
    assert cli("verify", tmp_path / "back").code == 0


def test_held_out_evaluations_go_there_and_back(cli, hub, results, trained, tmp_path):
    write_held_out(trained, evaluate_held_out(trained, read_record(trained), "00" * 32))
    assert cli("push", results, "--to", "ann/board", "--yes").code == 0
    out = tmp_path / "pulled"
    assert cli("pull", "datasets/ann/board", "--verify", "--out", out).code == 0
    there = out / trained.parent.name / trained.name
    assert read_held_out(there, read_record(there)) is not None
    # Nobody has checked them where nothing is measured.
    assert cli("pull", "datasets/ann/board", "--no-verify", "--out", tmp_path / "more").code == 0
    assert not [*(tmp_path / "more").rglob("*.heldout.json")]
    # One that is of another record is refused.
    name = held_out_path(trained).relative_to(results).as_posix()
    files = hub.repositories["dataset", "ann/board"].files
    files[name] = files[name].replace(b'"prompts": ', b'"prompts": 1')
    refused = cli("pull", "datasets/ann/board", "--verify", "--out", tmp_path / "other")
    assert refused.code != 0
    assert "was edited" in refused.err
    assert not (tmp_path / "other").exists()


def test_an_exported_task_goes_there_and_back(cli, hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("export", "--task", "read", "--prompts", 5, "out").code == 0
    outcome = cli("push", "out", "--to", "ann/read", "--yes")
    assert outcome.code == 0, outcome.err
    pushed = hub.repositories["dataset", "ann/read"].files
    assert set(pushed) == {"README.md", "croissant.json", "export.json", "data/test.parquet"}
    assert json.loads(pushed["croissant.json"])["conformsTo"].endswith("croissant/1.1")
    outcome = cli("pull", "datasets/ann/read")
    assert outcome.code == 0, outcome.err
    for name, content in pushed.items():
        assert (tmp_path / "read" / name).read_bytes() == content


def test_a_second_push_replaces_what_the_first_left(cli, hub, results, tmp_path):
    assert cli("push", results, "--to", "ann/board", "--yes").code == 0
    pushed = hub.repositories["dataset", "ann/board"]
    pushed.files["notes.txt"] = b"the owner's"
    (gone,) = (results / "least-squares").glob("zero-*.json")
    gone.unlink()
    outcome = cli("push", results, "--to", "ann/board", "--yes")
    assert outcome.code == 0, outcome.err
    assert f"least-squares/{gone.name}" in outcome.out
    assert f"least-squares/{gone.name}" not in pushed.files
    assert pushed.files["notes.txt"] == b"the owner's"
    assert len(pushed.commits) == 2
    assert cli("pull", "datasets/ann/board", "--out", tmp_path / "back").code == 0


def test_nothing_is_uploaded_without_a_yes(cli, hub, trained, monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    outcome = cli("push", trained, "--to", "ann/tiny")
    assert outcome.code == 2
    assert "README.md" in outcome.out
    assert "add --yes to upload these files" in outcome.err
    assert hub.writes == []


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_a_terminal_is_asked(cli, hub, trained, monkeypatch, answer, code):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    outcome = cli("push", trained, "--to", "ann/tiny")
    assert outcome.code == code
    assert "Upload this?" in outcome.err
    assert (("model", "ann/tiny") in hub.repositories) == (code == 0)
    assert bool(hub.writes) == (code == 0)


def test_private_is_refused_for_a_public_repository(cli, hub, trained):
    hub.repositories["model", "ann/tiny"] = Repository()
    outcome = cli("push", trained, "--to", "ann/tiny", "--private", "--yes")
    assert (outcome.code, hub.writes) == (2, [])
    assert "ann/tiny exists and is public" in outcome.err
    hub.repositories["model", "ann/tiny"].private = True
    assert cli("push", trained, "--to", "ann/tiny", "--private", "--yes").code == 0


def test_a_repository_that_was_made_since_it_was_asked_for_gets_nothing(hub, trained):
    made = hub.repositories["model", "ann/tiny"] = Repository()
    with pytest.raises(RunError, match="409 Conflict"):
        HubClient().push(pack(trained, print), "ann/tiny", private=True, deleted=[], parent=None)
    assert made.files == {}


# The token


def test_the_token_is_sent_to_the_hub_and_to_nothing_else(cli, hub, trained, tmp_path):
    outcomes = [cli("push", trained, "--to", "ann/tiny", "--yes"),
                cli("pull", "ann/tiny", "--out", tmp_path / "back")]  # fmt: skip
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert {header for _, _, header in hub.requests} <= {f"Bearer {TOKEN}", None}
    # Uploads of large files go to a store, which has its own authorization.
    stores = [header for _, path, header in hub.requests if path.startswith("/store/")]
    assert set(stores) == {None}
    everything = "".join(outcome.out + outcome.err for outcome in outcomes).encode()
    files = hub.repositories["model", "ann/tiny"].files.values()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    for content in (everything, *files, *written):
        assert TOKEN.encode() not in content


def test_without_a_login_a_line_says_how_to_get_one(cli, hub, trained, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    outcome = cli("push", trained, "--to", "ann/tiny", "--yes")
    assert (outcome.code, hub.writes) == (2, [])
    assert "hf auth login" in outcome.err


def test_a_file_that_holds_the_token_is_not_uploaded(cli, hub, results, monkeypatch):
    assert cli("export", "--task", "read", "--prompts", 2, results / "out").code == 0
    texts = {"croissant.json": TOKEN.encode()}
    monkeypatch.setattr("iclbench.exchange.packing.texts_of", lambda export: texts)
    outcome = cli("push", results / "out", "--to", "ann/read", "--yes")
    assert (outcome.code, outcome.err.count("\n"), hub.writes) == (2, 1, [])
    assert "croissant.json contains your Hub token" in outcome.err
    assert TOKEN not in outcome.err


@pytest.mark.parametrize("size", range(1, 12))
def test_a_token_across_two_chunks_is_seen(size):
    def parts(data):
        return [data[start : start + size] for start in range(0, len(data), size)]

    assert _contains(parts(b"a line with hf_secret in it"), b"hf_secret")
    assert not _contains(parts(b"a line with hf_secre and t"), b"hf_secret")


def test_a_refusal_that_repeats_the_token_is_one_line_without_it(cli, hub, trained):
    hub.refuse = f"Bearer {TOKEN} may not\nwrite here"
    outcome = cli("push", trained, "--to", "ann/tiny", "--yes")
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "can't be written" in outcome.err
    assert TOKEN not in outcome.err + outcome.out


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://hub.example.com", "must begin with https://"),
        ("https://ann:secret@hub.example.com", "contains a password"),
        ("ftp://127.0.0.1", "must begin with https://"),
    ],
)
def test_an_unsafe_address_is_refused(cli, hub, trained, monkeypatch, address, message):
    monkeypatch.setenv("HF_ENDPOINT", address)
    for words in (("push", trained, "--to", "ann/x", "--yes"), ("pull", "ann/x")):
        outcome = cli(*words)
        assert outcome.code == 2
        assert message in outcome.err
        assert "secret@" not in outcome.err


def test_a_hub_that_does_not_answer_is_named(cli, hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    outcome = cli("pull", "ann/x")
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "http://127.0.0.1:9 does not answer" in outcome.err
    assert "ConnectError" not in outcome.err


def test_what_is_not_there_is_one_line(cli, hub, trained, tmp_path):
    hub.repositories["model", "ann/other"] = Repository(files={"weights.bin": b"1"})
    for words, message in [
        (("pull", "ann/missing"), "a dataset is named datasets/ann/missing"),
        (("pull", "ann/other"), "has no iclbench records"),
        (("pull", "./missing"), "there is no folder"),
        (("push", "missing.json", "--to", "ann/x"), "missing.json can't be read"),
        (("push", trained, "--to", "datasets/ann/x"), "needs a model repository"),
        (("push", trained, "--to", "ann/x", "--task", "read"), "works only with a folder"),
        (("push", trained, "--to", trained.parent.parent), "holds files: give a new folder"),
        (("push", trained.parent.parent, "--to", trained.parent / "sub"), "is inside"),
    ]:
        outcome = cli(*words, *(("--out", tmp_path / "back") if words[0] == "pull" else ()))
        assert (outcome.code, outcome.err.count("\n")) == (2, 1), outcome.err
        assert message in outcome.err
    assert hub.writes == []
