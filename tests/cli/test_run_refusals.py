"""Bad usage is one clear line and exit code 2."""

from __future__ import annotations

import pytest
from tiny import MODEL, TASK, TINY

from iclbench import UsageError
from iclbench.runs import run as runs

BAD = {
    "unknown model": (("--model", "transfomer", *TASK), "did you mean 'transformer'"),
    "unknown task": ((*MODEL, "--task", "least-sqares"), "did you mean 'least-squares'"),
    "unknown recipe": ((*MODEL, *TASK, "--recipe", "quik"), "did you mean 'quick'"),
    "unknown field": ((*MODEL, *TASK, "--model-args", "layer=2"), "did you mean 'layers'"),
    "unknown task field": ((*MODEL, *TASK, "--task-args", "dims=2"), "did you mean 'dim'?"),
    "wrong type": ((*MODEL, *TASK, "--model-args", "layers=two"), "layers: input should be"),
    "no layers": ((*MODEL, *TASK, "--model-args", "layers=0"), "greater than or equal to 1"),
    "heads": ((*MODEL, *TASK, "--model-args", "heads=3"), "3 heads do not divide the width 64"),
    "no device": ((*MODEL, *TASK, "--device", "cuda:99"), "does not exist"),
    "what device": ((*MODEL, *TASK, "--device", "gpu"), "is not a device"),
    "not causal": (
        (*MODEL, "--task", "least-squares-prefixes", "--model-args", "causal=false"),
        "would read the answers",
    ),
    "not answered": (
        ("--model", "nearest-neighbours", *TASK, "--task-args", "target=weights"),
        "not weights",
    ),
    "no checkpoint": ((*MODEL, *TASK, "--weights", "missing.safetensors"), "no such file"),
    "dtype": ((*MODEL, *TASK, "--dtype", "float8"), "float32"),
    "seeds": ((*MODEL, *TASK, "--seeds", "many"), "neither a number nor a list"),
    "prompts": ((*MODEL, *TASK, "--eval-prompts", "0"), "error: --eval-prompts: input should be"),
    "half a list": ((*MODEL, *TASK, "--seeds", "[7"), "neither a number nor a list"),
    "of one model": (
        ("--model", "transformer,baseconv", *TASK, "--model-args", "heads=2"),
        "transformer.heads=VALUE gives it to transformer alone",
    ),
    "no file": ((*MODEL, *TASK, "--model-args", "@no.toml"), "no.toml: No such file"),
    "no tuning": ((*MODEL, *TASK, "--tuned", "no.json"), ": no.json can't be read: No such file"),
    "no seeds": ((*MODEL, *TASK, "--seeds", "0"), "at least one seed"),
    "arguments": ((*MODEL, *TASK, "--model-args", "layers"), "not of the form key=value"),
    "optimizer": ((*MODEL, *TASK, "--recipe-args", "optimizer=adm"), "did you mean"),
    "columns": ((*MODEL, *TASK, "--columns", "model,scor"), "did you mean 'score'"),
    "sort": ((*MODEL, *TASK, "--sort", "-scor"), "did you mean 'score'"),
    "trials": ((*MODEL, *TASK, "--trials", "3"), "--trials needs --tune"),
    "shift": (("--model", "zero", *TASK, "--shift", "nope"), "unknown shift 'nope'"),
    "nothing": (("--model", ",", *TASK), "need at least one name"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_one_line_and_exit_code_2(cli, tmp_path, case):
    args, message = BAD[case]
    outcome = cli("run", *args, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert "Traceback" not in outcome.err
    assert not (tmp_path / "out").exists()


def test_an_output_folder_that_cannot_be_written_is_refused(cli, tmp_path):
    (tmp_path / "file").write_text("in the way")
    outcome = cli("run", "--model", "zero", *TASK, "--out", tmp_path / "file" / "results")
    assert outcome.code == 2
    assert "can't be written" in outcome.err


def test_a_checkpoint_that_does_not_fit_is_refused(cli, tmp_path):
    cli("run", "--model", "baseconv", *TASK, *TINY, "--out", tmp_path)
    (weights,) = tmp_path.rglob("objects/*/*.safetensors")
    outcome = cli("run", "--model", "baseconv", *TASK, "--weights", weights, "--out", tmp_path)
    assert outcome.code == 2
    assert "does not fit" in outcome.err
    other = cli("run", *MODEL, *TASK, "--init", weights, "--out", tmp_path)
    assert other.code == 2
    assert "weights of baseconv" in other.err


@pytest.mark.parametrize("damage", ["truncated", "edited"])
def test_a_damaged_record_is_refused_by_every_verb(cli, tmp_path, damage):
    run = ("run", "--model", "zero", *TASK, *TINY, "--out", tmp_path)
    cli(*run)
    (path,) = tmp_path.rglob("*.json")
    text = path.read_text()
    bad = text[:-30] if damage == "truncated" else text.replace('"mean": ', '"mean": 1')
    path.write_text(bad)
    for args in (run, ("verify", path), ("leaderboard", "show", "--out", tmp_path)):
        outcome = cli(*args)
        assert outcome.code == 2, args
        assert damage in outcome.err
        assert "Traceback" not in outcome.err
    assert path.read_text() == bad


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("leaderboard", "show", "--out", "missing"), "no folder"),
        (("leaderboard", "show", "--out", "."), "no records"),
        (("verify", "missing.json"), "can't be read"),
        (("describe", "transfomer"), "did you mean 'transformer'"),
        (("sweep", "missing.toml"), "missing.toml"),
        (("ls", "nonsense"), "models"),
        (("leaderboard", "show", "--format", "githb"), "is not one of 'table', 'csv'"),
    ],
)
def test_other_verbs_refuse_bad_input(cli, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*args)
    assert outcome.code == 2
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_a_file_in_the_place_of_the_output_folder_is_one_line(cli, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("mine")
    trained = ("--model", "transformer", *TASK, "--recipe", "smoke")
    searched = (*trained, "--trials", 2)
    for words in (("run", *trained), ("tune", *searched), ("run", "--tune", *searched)):
        outcome = cli(*words, "--out", taken)
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert f"the output folder {taken} can't be written" in outcome.err
    shown = cli("leaderboard", "show", taken)
    assert (shown.code, shown.err) == (
        2, f"iclbench: error: {taken} is a file: give a folder of records\n"
    )  # fmt: skip


def test_a_file_in_the_place_of_the_leaderboards_is_told_before_anything_is_measured(cli, tmp_path):
    cli("run", "--model", "zero", *TASK, "--eval-prompts", "8", "--out", tmp_path / "out")
    taken = tmp_path / "file"
    taken.write_text("mine")
    outcome = cli("submit", tmp_path / "out", "--to", taken)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"iclbench: error: {taken} is a file: records can't be copied into it\n"


def test_records_in_a_folder_that_cannot_be_written_are_shown(cli, tmp_path, monkeypatch):
    words = ("run", "--model", "zero", *TASK, "--out", tmp_path / "archive")
    assert cli(*words).code == 0

    def refuse(folder):
        raise UsageError(f"the output folder {folder} can't be written")

    monkeypatch.setattr(runs, "require_writable", refuse)
    assert cli(*words).code == 0
    assert cli(*words, "--force").code == 2
