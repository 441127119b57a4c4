"""The guide for plugin authors: every example is installed and conforms; its commands run."""

from __future__ import annotations

import glob
import re
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from fake_distributions import install_project, write_distribution
from test_docs import blocks, commands

import iclbench
from iclbench import check_architecture, check_plugin, load_task
from iclbench.api.prompts import Target
from iclbench.plugins import host

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
#: Pages whose example is a plugin. Checking a model or a task takes seconds.
PLUGINS = [
    pytest.param(page, marks=[pytest.mark.slow] * (page not in {"grader", "observer", "command"}))
    for page in ("mixer", "architecture", "construction", "solver", "asked", "task", "classes",
                 "shift", "metric", "grader", "observer", "executor", "recipe", "command")
]  # fmt: skip


@pytest.fixture
def installed(package_folder, monkeypatch):
    """Installs the example of a page; returns its distribution."""
    modules = []

    def install(page):
        code, *_ = blocks(GUIDE / f"{page}.md", "python")
        (about,) = blocks(GUIDE / f"{page}.md", "toml")
        ((name, module),) = tomllib.loads(about)["project"]["entry-points"]["iclbench"].items()
        distribution = module.replace("_", "-")
        write_distribution(package_folder, distribution, {name: module})
        (package_folder / f"{module}.py").write_text(code, encoding="utf-8")
        modules.append(module)
        host.cache_clear()
        return distribution

    work = package_folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield install
    for module in modules:
        sys.modules.pop(module, None)


@pytest.mark.parametrize("page", PLUGINS)
def test_an_example_conforms_and_its_commands_run(page, installed, cli):
    distribution = installed(page)
    problems = [(o.case.label, o.text) for o in check_plugin(distribution) if o.status != "ok"]
    unchecked = [("model program: run", "it would query a language model")]
    assert problems == (unchecked if page == "asked" else [])
    for words in commands(GUIDE / f"{page}.md"):
        assert words[0] == "iclbench"
        if words[1] == "check":
            assert words[2:] == [distribution]
            continue
        arguments = [path for word in words[1:] for path in glob.glob(word) or [word]]
        outcome = cli(*arguments)
        assert outcome.code == 0, (words, outcome.err)


def test_the_construction_of_the_guide_takes_the_step_of_its_formula(installed):
    installed("construction")
    _, comparison = blocks(GUIDE / "construction.md", "python")
    exec(compile(comparison, "construction.md", "exec"), {})


def test_the_observer_of_the_guide_writes_losses(installed, tmp_path):
    installed("observer")
    args = {"recipe": "smoke", "recipe_args": {"steps": 2}, "seeds": [3, 5], "eval_prompts": 8}
    record = iclbench.run(model="baseconv", task="least-squares", out=tmp_path, **args)
    lines = [line.split(",") for line in Path("losses.csv").read_text("utf-8").splitlines()]
    assert lines[0] == [record.id, "baseconv", "least-squares", "started"]
    assert {line[1] for line in lines[1:-1]} == {"3", "5"}
    assert lines[-1][:2] == [record.id, "squared_error"]


@pytest.mark.slow
def test_the_wrapped_model_takes_weights_of_its_library(installed, tmp_path):
    installed("architecture")
    from safetensors.torch import save_file
    from transformers import GPT2Config, GPT2LMHeadModel

    task = load_task("least-squares", dim=3, examples=4)
    gpt2 = host().load("model", "gpt2", iclbench.Architecture)()
    config = gpt2.Config(layers=1, width=8)
    check_architecture(gpt2, task, config)
    shape = {"n_positions": task.signature.length, "n_embd": 8, "n_layer": 1, "n_head": 2}
    theirs = GPT2LMHeadModel(GPT2Config(vocab_size=1, **shape)).state_dict()
    module = gpt2.build(task.signature, config)
    own = {name: value for name, value in module.state_dict().items() if "body" not in name}
    body = {n: v for n, v in theirs.items() if n.startswith("transformer.") and ".wte." not in n}
    file = tmp_path / "gpt2.safetensors"
    save_file({**own, **body}, str(file))
    record = iclbench.run(
        model="gpt2", model_args={"layers": 1, "width": 8}, task="least-squares",
        task_args={"dim": 3, "examples": 4}, weights=str(file), eval_prompts=8, out=tmp_path / "r",
    )  # fmt: skip
    assert record.spec.origin == "loaded"


@pytest.mark.slow
def test_the_tutorial_leads_to_a_row_of_one_s_own(package_folder, cli, monkeypatch):
    work = package_folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    outcomes = {}
    for words in commands(GUIDE.parent / "tutorial.md"):
        assert words[0] == "iclbench"
        if words[1] == "check":
            continue  # as the plugin's own tests do, which `test_scaffold.py` runs
        short = ["--eval-prompts", "64"] if words[1] == "run" else []
        outcomes[" ".join(words[1:4])] = outcome = cli(*words[1:], *short)
        assert outcome.code == 0, (words, outcome.err)
        if words[1] == "new":  # `pip install -e`, which `test_scaffold.py` runs
            project = work / "iclbench-decay"
            assert install_project(package_folder, project) == project.name
            monkeypatch.syspath_prepend(project)
            host.cache_clear()
    board = outcomes["leaderboard show"].out
    assert board.count("decay") >= 2
    assert all(model in board for model in ("transformer", "averaging", "least-squares-qr"))
    for module in [name for name in sys.modules if name.startswith("iclbench_decay")]:
        del sys.modules[module]


@pytest.mark.parametrize("page", ["interfaces", "weights", "../tuning"])
def test_the_python_of_a_page_works(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module: dict = {"__name__": "__main__"}
    for text in blocks(GUIDE / f"{page}.md", "python"):
        exec(compile(text, f"{page}.md", "exec"), module)
    host.cache_clear()  # a page may add a plugin


def test_the_torch_model_of_the_guide_has_the_same_errors_with_and_without_a_record(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    module: dict = {"__name__": "__main__"}
    for text in blocks(GUIDE / "weights.md", "python")[-2:]:
        exec(compile(text, "weights.md", "exec"), module)
    host.cache_clear()  # it has a plugin more now
    assert module["record"].spec.origin == "loaded"
    recorded, computed = re.findall(r"\d+\.\d+", capsys.readouterr().out)
    assert float(recorded) == pytest.approx(float(computed), rel=1e-3)


def test_the_conversion_of_the_guide_renames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module: dict = {"__name__": "weights"}
    exec(compile(blocks(GUIDE / "weights.md", "python")[0], "weights.md", "exec"), module)
    state = dict.fromkeys(("encoder.weight", "head.bias", "positions"))
    renamed = module["Renamed"].convert_weights(None, state, None, None)
    assert list(renamed) == ["embed.real.weight", "readout.bias", "positions"]


def test_every_target_is_explained():
    text = (GUIDE / "interfaces.md").read_text("utf-8")
    for target in get_args(Target):
        assert re.search(rf"^\| `{target}` \|", text, re.M), target
