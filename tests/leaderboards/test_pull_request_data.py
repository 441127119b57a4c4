"""Pull requests whose records name data of a stranger, and the tables that they may change."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from forging import reseal

from iclbench import RecordStore, RunSpec, UsageError, run
from iclbench.leaderboards.build import build
from iclbench.leaderboards.pull_request import TABLES, changes, file_problems


@pytest.fixture
def path(tmp_path):
    run("zero", "least-squares", eval_prompts=16, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    return path


def problems(path):
    return list(file_problems(path.parents[1], [path]))


def of_other_data(path, task_args, **grading):
    """The record, as if it were of a run on other data."""
    request = RunSpec(model="zero", task="stories", task_args=task_args, **grading)
    return reseal(path, lambda content: content.update(command=request.command()))


@pytest.mark.parametrize(
    "data",
    ["/etc/passwd", "stranger/dataset", "..\\secret.txt", "~", "README.md", "tales+README.md",
     "leaderboards", "stranger/x+a://b"],
)  # fmt: skip
def test_a_run_on_a_file_or_a_data_set_is_refused(path, data, monkeypatch, tmp_path_factory):
    base = tmp_path_factory.mktemp("base")
    (base / "README.md").write_text("a file of the base branch")
    (base / "leaderboards").mkdir()
    monkeypatch.chdir(base)
    (problem,) = problems(of_other_data(path, {"data": data}))
    assert problem.endswith(" names data that no package ships")


def test_a_grader_s_model_is_refused_too(path):
    args = {"path": "models/huge.gguf"}
    (problem,) = problems(of_other_data(path, {}, grader="pmi", grader_args=args))
    assert "path=models/huge.gguf names data" in problem


def test_arguments_of_models_and_texts_in_lists_are_checked(path):
    request = RunSpec(model="huggingface", task="stories", model_args={"folder": ["a", "b/c"]})
    (problem,) = problems(reseal(path, lambda content: content.update(command=request.command())))
    assert "folder=b/c names data" in problem


def test_shipped_data_and_addresses_are_none(path):
    for data in ("tales", "", "a" * 300):
        assert problems(of_other_data(path, {"data": data})) == []
    args = {"base_url": "https://host/v1"}
    assert problems(of_other_data(path, {}, grader="openai", grader_args=args)) == []


def test_every_table_that_is_built_may_change_with_records(leaderboards, tmp_path):
    folder = tmp_path / "leaderboards"
    shutil.copytree(leaderboards, folder)
    written = {path.relative_to(tmp_path).as_posix() for path in build(folder)}
    assert {"leaderboards/stale.md", "leaderboards/README.md"} <= written
    assert [name for name in written if not TABLES.fullmatch(name)] == []
    assert TABLES.fullmatch("leaderboards/findings.md")
    assert not TABLES.fullmatch("leaderboards/studies.toml")


def test_branches_without_a_common_commit_are_refused(tmp_path):
    def git(*words):
        author = ("-c", "user.name=name", "-c", "user.email=mail@example.org")
        words = ["git", "-C", str(tmp_path), *author, *words]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "-m", "one")
    one, tree = git("rev-parse", "HEAD", "HEAD^{tree}").split()
    other = git("commit-tree", tree, "-m", "another root")
    with pytest.raises(UsageError, match="the branches have no merge base; rebase"):
        changes(tmp_path, one, other)
