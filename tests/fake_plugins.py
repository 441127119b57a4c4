"""Plugins for tests: a sound one with an entry of every kind, and sources of others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_distributions import write_distribution

from iclbench import Architecture, Executor, Grader, Metric, Recipe, Task, Tracker
from iclbench.cli import app
from iclbench.discovery import CATALOG_HOOKS
from iclbench.plugins import host

#: The base class of every kind of entry except commands and suites.
BASES = {
    "model": Architecture,
    "task": Task,
    "recipe": Recipe,
    "metric": Metric,
    "grader": Grader,
    "executor": Executor,
    "tracker": Tracker,
}

#: Every kind of entry except commands; suites are files or objects, not classes.
KINDS = (*BASES, "suite")

#: A run of the command line that lacks only its model.
RUN = ("run", "--task", "least-squares", "--device", "cpu", "--eval-prompts", 8)

SAMPLE = """
    import time

    time.sleep(0.02)

    @hookimpl
    def iclbench_architectures():
        return [Entry("fine-model", "predicts 0", "fine_parts:Model")]

    @hookimpl
    def iclbench_tasks():
        return [Entry("fine-task", "least squares again", "fine_parts:FineTask")]

    @hookimpl
    def iclbench_recipes():
        return [Entry("fine-recipe", "one step", "fine_parts:RECIPE")]

    @hookimpl
    def iclbench_suites():
        return [Entry("fine-suite", "one board", "fine_parts:SUITE")]

    @hookimpl
    def iclbench_metrics():
        return [Entry("fine-metric", "always 1", "fine_parts:One")]

    @hookimpl
    def iclbench_graders():
        return [Entry("fine-grader", "always 1", "fine_parts:Grade")]

    @hookimpl
    def iclbench_executors():
        return [Entry("fine-executor", "local again", "fine_parts:Here")]

    @hookimpl
    def iclbench_trackers():
        return [Entry("fine-tracker", "prints what it gets", "fine_parts:Printer")]

    @hookimpl
    def iclbench_commands():
        return [Entry("hello", "Greet [some] body.", "fine_parts:hello")]
"""

SAMPLE_PARTS = """
    import torch
    import typer
    from iclbench_least_squares.fixed import LeastSquares
    from iclbench_solvers.simple import Zero

    from iclbench import Grader, Metric, Recipe, Suite, Tracker
    from iclbench.sweeps.executors.local import Local

    RECIPE = Recipe(steps=1, batch=1)
    SUITE = Suite(
        name="fine-suite",
        version=1,
        summary="one board",
        board=({"name": "one", "task": "fine-task", "chance": "fine-model"},),
    )


    class Model(Zero):
        name = "fine-model"


    class FineTask(LeastSquares):
        name = "fine-task"


    class One(Metric):
        name = "fine-metric"

        def supports(self, task):
            return None

        def compute(self, model, task, batch, context):
            return {"one": torch.ones(len(batch.target), dtype=torch.float64)}


    class Grade(Grader):
        name = "fine-grader"

        def grade(self, completions, folder):
            return {"one": [1.0] * len(completions)}


    class Printer(Tracker):
        name = "fine-tracker"

        def start(self, spec, settings):
            print("start", spec.model)

        def log(self, step, values):
            print("log", step, sorted(values))

        def finish(self, record, summary):
            print("finish", sorted(summary)[0])


    class Here(Local):
        name = "fine-executor"


    def hello(words: list[str] = typer.Argument(default=[]), name: str = "you"):
        print("hello", name, *words)
"""

#: Objects of which only `Right` is a valid model named odd, and functions of commands.
TARGETS = """
    import typer

    from iclbench import Recipe, Solver
    from iclbench_solvers.simple import Zero

    class Incomplete(Solver):
        name = "odd"

    class Other(Zero):
        name = "other"

    class Right(Zero):
        name = "odd"

    INSTANCE = Right()
    NUMBER = 3

    def leave():
        raise typer.Exit(3)

    def abort():
        raise typer.Abort

    def answer():
        return 4
"""


def offer(hook: str, *entries: str) -> str:
    """The source of a plugin whose hook returns these entries, given as source."""
    return f"@hookimpl\ndef {hook}():\n    return [{', '.join(entries)}]\n"


def offer_model(name: str, target: str = "iclbench_solvers.simple:Zero") -> str:
    """The source of a plugin with one model."""
    return offer("iclbench_architectures", f"Entry({name!r}, 'a model', {target!r})")


def write_odd(folder: Path, kind: str, target: str) -> None:
    """Install a plugin whose one entry, `odd`, has this target."""
    modules = {
        "odd_plugin": offer(CATALOG_HOOKS[kind], f"Entry('odd', 'strange', {target!r})"),
        "targets": TARGETS,
        "exits_on_import": "raise SystemExit(0)",
    }
    write_distribution(folder, "iclbench-odd", {"odd-ones": "odd_plugin"}, "2.0", **modules)


def choose_plugins(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Load only the plugins of these names from now on."""
    monkeypatch.setenv("ICLBENCH_PLUGINS", ",".join(names))
    host.cache_clear()


@pytest.fixture
def package_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder on the path; modules imported from it are forgotten after the test."""
    monkeypatch.delenv("ICLBENCH_PLUGINS", raising=False)
    monkeypatch.setattr(app, "registered_commands", app.registered_commands)
    monkeypatch.syspath_prepend(tmp_path)
    host.cache_clear()
    yield tmp_path
    host.cache_clear()
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture
def sample_plugin(package_folder: Path) -> Path:
    """The folder of a sound plugin with one entry of every kind."""
    modules = {"fine_plugin": SAMPLE, "fine_parts": SAMPLE_PARTS}
    write_distribution(package_folder, "iclbench-fine", {"fine": "fine_plugin"}, "1.2", **modules)
    return package_folder
