"""The commands, examples and links of the documentation work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from iclbench import hookspecs, load_task, run, tracking
from iclbench.runs.checks import check_architecture

ROOT = Path(__file__).parents[1]
HOOKS = [name for name in vars(hookspecs) if name.startswith("iclbench_")]
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: The commands of the guide and of the tutorial are run by `test_guide.py`.
GUIDE = sorted((ROOT / "docs").glob("*/*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def words_of(text: str) -> list[list[str]]:
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


def commands(page: Path) -> list[list[str]]:
    return words_of("\n".join(blocks(page, "bash")))


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook):
    assert f"`{hook}`" in (ROOT / "docs" / "plugins.md").read_text("utf-8")


@pytest.mark.parametrize(
    "page", [p for p in PAGES if commands(p) and p.stem != "tutorial"], ids=lambda p: p.stem
)
def test_every_command_of_a_page_works(page, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = re.findall(r"^```(toml|bash)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    for language, text in parts:
        if language == "toml":
            for name in ("sweep.toml", "suite.toml", "campaign.toml"):
                (tmp_path / name).write_text(text, "utf-8")
            continue
        for words in words_of(text):
            assert words[0] == "iclbench"
            outcome = cli(*words[1:])
            assert outcome.code == 0, (words, outcome.err)


def test_the_python_of_the_records_page_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(ROOT / "docs" / "records.md", "python")
    exec(compile(text, "records.md", "exec"), {})
    assert "least-squares v2" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [*PAGES, *GUIDE, *ROOT.glob("*.md"), *ROOT.glob("*/iclbench_*/README.md")],
    ids=lambda p: p.name,
)
def test_every_link_has_a_target(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_readme_s_commands_work(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # With a recipe that takes seconds.
    for words in commands(ROOT / "README.md"):
        if words[0] == "iclbench":
            quickly = ["smoke" if word == "quick" else word for word in words[1:]]
            assert cli(*quickly).code == 0, words


def test_make_quickstart_runs_the_readme_s_command():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    quickstart = re.search(r"(iclbench run.*?)\n\n", makefile, re.S)[1]
    words = shlex.split(quickstart.replace("\\\n", " "))
    assert words in [list(command) for command in commands(ROOT / "README.md")]


def test_the_readme_begins_with_a_sentence_a_picture_and_five_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "README.md").read_text("utf-8")
    picture, installation, python = (page.index(t) for t in ("![", "pip install .", "```python"))
    assert picture < installation < python < page.index("## Install")
    text = blocks(ROOT / "README.md", "python")[0]
    assert len([line for line in text.splitlines() if line.strip()]) <= 5
    exec(compile(text, "README.md", "exec"), {})
    assert "squared_error" in capsys.readouterr().out


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == metadata.version("iclbench")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_the_workflow_tests_three_systems_and_the_pythons_that_pages_name():
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    classifiers = [text.rpartition(" :: ")[2] for text in about["classifiers"]]
    oldest, *_, newest = [text for text in classifiers if text.startswith("3.")]
    assert about["requires-python"] == f">={oldest}"
    for page in ("README.md", "docs/install.md", "docs/stability.md"):
        assert f"Python {oldest} to {newest}" in (ROOT / page).read_text("utf-8"), page
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["fast"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert {oldest, newest} <= set(matrix["python"])


def test_make_prints_its_targets():
    if shutil.which("make") is None:
        pytest.skip("needs make")
    words = ["make", "--no-print-directory", "-C", str(ROOT)]
    bare = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    named = subprocess.run([*words, "help"], check=True, capture_output=True, text=True).stdout
    assert bare == named
    for target in ("quickstart", "test", "test-slow", "lint", "docs", "site", "picture"):
        assert re.search(rf"^  {target} +\S", bare, re.M), target
    assert max(map(len, bare.splitlines())) <= 80


def test_release_notes_are_a_section_of_the_changelog():
    if shutil.which("make") is None:
        pytest.skip("needs make")
    words = ["make", "--no-print-directory", "-C", str(ROOT), "notes"]
    notes = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert notes.startswith("## Unreleased")
    assert notes.strip() in (ROOT / "CHANGELOG.md").read_text("utf-8")
    missing = subprocess.run([*words, "VERSION=99.9"], check=False, capture_output=True, text=True)
    assert missing.returncode != 0
    assert "CHANGELOG.md has no section 99.9" in missing.stderr
    assert missing.stdout == ""


def test_the_readme_s_plugin_works(cli, tmp_path, provide):
    (text,) = (t for t in blocks(ROOT / "README.md", "python") if "SequenceArchitecture" in t)
    assert len([line for line in text.splitlines() if line.strip()]) < 30
    module: dict = {}
    exec(compile(text, "README.md", "exec"), module)
    (entry,) = module["iclbench_architectures"]()
    provide("model", entry.name, entry.target)
    check_architecture(entry.target(), load_task("least-squares"), entry.target.Config(layers=1))
    outcome = cli("run", "--model", entry.name, "--task", "least-squares", "--recipe", "smoke",
                "--seeds", "2", "--out", tmp_path)  # fmt: skip
    assert outcome.code == 0
    assert " gated-average " in outcome.out


def test_the_tracker_of_the_plugins_page_works(tmp_path, provide):
    (text,) = (t for t in blocks(ROOT / "docs" / "plugins.md", "python") if "(Tracker)" in t)
    module: dict = {}
    exec(compile(text, "plugins.md", "exec"), module)
    provide("tracker", "diary", module["Diary"])
    with tracking("diary", out=tmp_path / "diaries"):
        record = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)
    score = record.metrics["squared_error"].digits.mean
    assert (tmp_path / "diaries" / f"{record.id}.txt").read_text() == f"zero\nscore {score}\n"


def test_the_python_of_the_trackers_page_works(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(ROOT / "docs" / "trackers.md", "python")
    exec(compile(text, "trackers.md", "exec"), {})
    assert list((tmp_path / "results" / "tensorboard").glob("least-squares/averaging-*/*tfevents*"))


@pytest.mark.slow
def test_the_python_of_the_export_page_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(ROOT / "docs" / "export.md", "python")
    module: dict = {}
    exec(compile(text, "export.md", "exec"), module)
    assert module["x"].shape == (100, 8, 3)
    assert len(module["rows"]) == 100
