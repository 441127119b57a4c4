"""The commands, examples and links of the documentation work."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from iclbench import Completion, Config, hookspecs, load_task, run
from iclbench.runs.checks import check_architecture, check_task
from iclbench.runs.grading import Grading

ROOT = Path(__file__).parents[1]
HOOKS = [name for name in vars(hookspecs) if name.startswith("iclbench_")]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)


def commands(page: Path) -> list[list[str]]:
    lines = "\n".join(blocks(page, "bash")).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip()]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook):
    assert f"`{hook}`" in (ROOT / "docs" / "plugins.md").read_text("utf-8")


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.stem)
def test_every_command_of_a_page_works(page, cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for text in blocks(page, "toml"):
        (tmp_path / "sweep.toml").write_text(text, "utf-8")
    for words in commands(page):
        assert words[0] == "iclbench"
        outcome = cli(*words[1:])
        assert outcome.code == 0, (words, outcome.err)


def test_the_python_of_the_records_page_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (text,) = blocks(ROOT / "docs" / "records.md", "python")
    exec(compile(text, "records.md", "exec"), {})
    assert "least-squares v2" in capsys.readouterr().out


def test_the_task_of_the_plugins_page_works(cli, tmp_path, provide):
    (text,) = (t for t in blocks(ROOT / "docs" / "plugins.md", "python") if "MeanEst" in t)
    assert len([line for line in text.splitlines() if line.strip()]) <= 30
    module: dict = {"__name__": "mean_estimation"}
    exec(compile(text, "plugins.md", "exec"), module)
    task = module["MeanEstimation"]
    check_task(task(task.Config()))
    provide("task", "mean-estimation", task)
    record = run(model="baseconv", task="mean-estimation", recipe="smoke", seeds=1, out=tmp_path)
    # The posterior variance of N samples is 1/(N+1).
    assert record.floor["squared_error"].mean == pytest.approx(1 / 9, rel=0.1)


@pytest.mark.parametrize(
    "page", [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("*/iclbench_*/README.md")], ids=lambda p: p.name
)
def test_every_link_has_a_target(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_readme_s_commands_work(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # `make quickstart` with a recipe that takes seconds.
    main_job = re.search(r"iclbench run(.*?)\n\n", (ROOT / "Makefile").read_text(), re.S)[1]
    words = shlex.split(main_job.replace("\\\n", " ").replace("quick", "smoke"))
    assert cli("run", *words).code == 0
    for words in commands(ROOT / "README.md"):
        if words[0] == "iclbench":
            assert cli(*words[1:]).code == 0, words


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


def test_the_workflow_tests_three_systems_and_two_pythons():
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["fast"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert len(matrix["python"]) == 2


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
    assert " decay " in outcome.out


def test_the_grader_of_the_plugins_page_works():
    (text,) = (t for t in blocks(ROOT / "docs" / "plugins.md", "python") if "(Grader)" in t)
    module: dict = {}
    exec(compile(text, "plugins.md", "exec"), module)
    grading = Grading(module["Brevity"](Config()))
    outcome = grading.grade([Completion("Once", "upon a time"), Completion("Once", "")], None)
    assert outcome == {"brevity": [0.25, 1.0]}
    assert grading.report().name == "brevity"


def test_the_metric_of_the_plugins_page_works(tmp_path, provide):
    (text,) = (t for t in blocks(ROOT / "docs" / "plugins.md", "python") if "(Metric)" in t)
    module: dict = {}
    exec(compile(text, "plugins.md", "exec"), module)
    provide("metric", "bias", module["Bias"])
    record = run(model="zero", task="least-squares", metrics=("bias",), out=tmp_path)
    assert abs(record.metrics["bias"].mean) < 0.3
