"""An empty path is refused: it would be the working directory."""

from __future__ import annotations

import pytest

import iclbench

TASK = ("--task", "least-squares")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("run", "--model", "zero", *TASK, "--out", ""), "--out"),
        (("run", "--model", "zero", *TASK, "--out="), "--out"),
        (("run", "--model", "zero", *TASK, "--tuned", ""), "--tuned"),
        (("tune", "--model", "transformer", *TASK, "--out", ""), "--out"),
        (("sweep", ""), "FILE"),
        (("sweep", "a.toml", "--out", ""), "--out"),
        (("campaign", ""), "FILE"),
        (("leaderboard", "figure", "a.toml", "--file", ""), "--file"),
        (("leaderboard", "figure", "a.toml", "--records", ""), "--records"),
        (("export", "", *TASK, "--prompts", 3), "DIR"),
        (("show", ""), "PATH"),
        (("verify", ""), "PATH"),
        (("submit", ""), "PATH"),
        (("submit", ".", "--to", ""), "--to"),
        (("push", "", "--to", "./copy"), "PATH"),
        (("push", ".", "--to", ""), "--to"),
        (("pull", ""), "FOLDER"),
        (("pull", ".", "--out", ""), "--out"),
        (("new", "task", "mine", "--out", ""), "--out"),
        (("view", ""), "DIR"),
        (("leaderboard", "show", ""), "FOLDER"),
        (("leaderboard", "show", "--out", ""), "--out"),
        (("leaderboard", "suite", "core", ""), "FOLDER"),
        (("leaderboard", "costs", ""), "FOLDER"),
        (("leaderboard", "build", ""), "FOLDER"),
        (("leaderboard", "site", ""), "DIR"),
        (("leaderboard", "site", "site", "--from", ""), "--from"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_an_empty_path_is_refused_by_name(cli, tmp_path, monkeypatch, words, name):
    monkeypatch.chdir(tmp_path)
    outcome = cli(*words)
    assert outcome.code == 2
    assert "the path is empty; use `.` for the working directory" in outcome.err
    assert name in outcome.err.partition(":")[2].partition("the path")[0]
    assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_defaults_and_the_working_directory_are_no_empty_paths(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ("--task-args", "dim=2,examples=4", "--eval-prompts", 32)
    assert cli("run", "--model", "zero", *TASK, *small).code == 0
    assert cli("leaderboard", "show").code == 0
    monkeypatch.chdir(tmp_path / "results")
    assert cli("leaderboard", "show", ".").code == 0


def test_a_plugin_s_verb_gets_an_empty_option_as_it_is(cli, sample_plugin):
    outcome = cli("hello", "--name", "", "--", "--out", "")
    assert (outcome.code, outcome.out) == (0, "hello  --out \n")


def test_a_tilde_is_the_home_folder(cli, tmp_path, monkeypatch):
    """A shell leaves that of `--out=~/x` alone, and a folder named ~ invites `rm -r ~`."""
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(here)
    args = {"model": "zero", "task": "least-squares", "eval_prompts": 8}
    cli("run", "--model", "zero", *TASK, "--eval-prompts", 8, "--out=~/cli")
    iclbench.run(**args, out="~/api")
    iclbench.sweep({"grid": [args]}, out="~/sweep")
    assert sorted(path.name for path in home.iterdir()) == ["api", "cli", "sweep"]
    assert len(iclbench.leaderboard("~/api")) == 1
    assert list(here.iterdir()) == []


def test_what_is_no_path_is_named():
    with pytest.raises(iclbench.UsageError, match="'3' is of type int, not a path"):
        iclbench.leaderboard(3)
    with pytest.raises(iclbench.UsageError, match="'None' is of type NoneType, not a path"):
        iclbench.read_record(None)
