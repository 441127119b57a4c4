"""Every promise that a metric, grader, recipe, suite, command or text breaks is named."""

from __future__ import annotations

import itertools
import math
import random
import re
import sys

import pytest
import torch
from pydantic import Field

from iclbench import (
    Axis,
    Config,
    ConformanceError,
    Grader,
    GraderReport,
    Metric,
    Recipe,
    Suite,
    UsageError,
    check_command,
    check_config,
    check_grader,
    check_metric,
    check_recipe,
    check_suite,
    load_task,
    predict,
)
from iclbench.kit import parts
from iclbench.kit.trials import NotCheckedError
from iclbench.leaderboards import descriptions
from iclbench.plugins import host
from iclbench_solvers.simple import Zero

TASK = load_task("least-squares", dim=2, examples=4)
MODEL = Zero().build(TASK.signature, Zero.Config())
CALLS = itertools.count()


class Sound(Metric):
    name = "sound"

    def supports(self, task):
        return None

    def axes(self, model):
        return {"both": Axis("sign", (-1.0, 1.0))}

    def score(self, prediction, task, batch):
        error = (prediction - batch.target)[:, 0, 0]
        return {"sound": error, "both": torch.stack([-error, error], dim=1)}


class Refuses(Sound):
    def supports(self, task):
        return "it is Tuesday"


class Single(Sound):
    def score(self, prediction, task, batch):
        return {"sound": (prediction - batch.target)[:, 0, 0].float()}


class Flat(Sound):
    def score(self, prediction, task, batch):
        return {"both": (prediction - batch.target)[:, 0, 0]}


class Mean(Sound):
    def score(self, prediction, task, batch):
        return {"sound": (prediction - batch.target).mean()}


class Number(Sound):
    def score(self, prediction, task, batch):
        return {"sound": 1.0}


class Unsteady(Sound):
    def score(self, prediction, task, batch):
        return {"sound": torch.full((len(prediction),), float(next(CALLS))).double()}


class AsksAgain(Sound):
    """Its answer depends on how many prompts the model sees at once."""

    def compute(self, model, task, batch, context):
        counted = predict(lambda prompt: prompt.y.sum(1) * len(prompt.y), batch.prompt, context)
        return {"sound": counted[:, 0]}


class OtherFloor(Sound):
    def floor(self, model, task, batch):
        return {"another": torch.zeros(len(batch.target)).double()}


class Infinite(Sound):
    def analysis(self, model, task, batches, context):
        return {"slope": math.inf}


class Nothing(Metric):
    name = "nothing"

    def supports(self, task):
        return None


def test_a_sound_metric_conforms():
    check_metric(Sound(), MODEL, TASK)


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (Refuses, "it refuses: it is Tuesday"),
        (Single, "sound is torch.float32"),
        (Flat, r"both is \(12,\), not \(12, 2\)"),
        (Mean, r"sound is \(\), not \(12,\)"),
        (Number, "sound is a float"),
        (Unsteady, "sound differs between two evaluations"),
        (AsksAgain, "sound depends on how many prompts"),
        (OtherFloor, "floor\\(\\) has another"),
        (Infinite, "analysis\\(\\) is not JSON"),
        (Nothing, "neither values nor an analysis"),
    ],
)
def test_a_metric_that_breaks_its_promise_is_caught(metric, reason):
    with pytest.raises(ConformanceError, match=reason):
        check_metric(metric(), MODEL, TASK)


class Brevity(Grader):
    name = "brevity"

    def grade(self, completions, folder):
        return {"brevity": [1 / (1 + len(c.ending)) for c in completions]}


class Moody(Brevity):
    def grade(self, completions, folder):
        return {"mood": [random.random() for _ in completions]}


class Relative(Brevity):
    def grade(self, completions, folder):
        longest = max(len(c.ending) for c in completions)
        return {"length": [len(c.ending) / (1 + longest) for c in completions]}


class Anonymous(Brevity):
    def report(self):
        return GraderReport(name="somebody")


class Paid(Brevity):
    paid = True

    def grade(self, completions, folder):
        raise AssertionError("a paid grader was asked")


class Remembers(Paid):
    def raw(self, completion):
        return {}

    def read(self, raw):
        return {}


class Locked(Brevity):
    def prepare(self, completions, budget):
        raise UsageError("it needs a key")


def test_a_sound_grader_conforms():
    check_grader(Brevity(Config()))


@pytest.mark.parametrize(
    ("grader", "error", "reason"),
    [
        (Moody, ConformanceError, "mood differs between two calls"),
        (Relative, ConformanceError, "length depends on the other completions"),
        (Anonymous, ConformanceError, "calls the grader 'somebody'"),
        (Paid, ConformanceError, r"needs raw\(\) and read\(\)"),
        (Remembers, NotCheckedError, "costs money"),
        (Locked, NotCheckedError, "it needs a key"),
    ],
)
def test_a_grader_that_breaks_its_promise_or_cannot_be_asked(grader, error, reason):
    with pytest.raises(error, match=reason):
        check_grader(grader(Config()))


class Undescribed(Config):
    width: int = 3
    depth: int = Field(2, description="number of layers")


def test_arguments_without_a_description_are_named():
    with pytest.raises(ConformanceError, match="without a description: width;"):
        check_config(Undescribed)


class Mistyped(Config):
    taps: int = Field("two", description="number of taps")  # type: ignore[assignment]


def test_a_default_of_another_type_and_unknown_replica_args_are_named():
    with pytest.raises(ConformanceError, match=r"the defaults: taps: .* valid integer"):
        check_config(Mistyped)
    with pytest.raises(ConformanceError, match="replica_args names init_sdt, which Config lacks"):
        check_config(Config, frozenset({"init_sdt"}))


def test_a_recipe_whose_optimizer_is_unknown_is_caught():
    check_recipe(Recipe(steps=1, batch=2))
    with pytest.raises(ConformanceError, match="adan"):
        check_recipe(Recipe(steps=1, batch=2, optimizer="adan"))
    with pytest.raises(NotCheckedError, match="no_such_package is not installed"):
        check_recipe(Recipe(steps=1, batch=2, optimizer="no_such_package.Adam"))


@pytest.mark.parametrize(
    ("board", "reason"),
    [
        ({"task": "least-squares", "chance": "zero"}, None),
        ({"task": "least-square", "chance": "zero"}, "unknown task"),
        ({"task": "least-squares", "chance": "zeros"}, "unknown model"),
        ({"task": "least-squares", "chance": "zero", "recipe": "papers"}, "unknown recipe"),
        ({"task": "least-squares", "chance": "zero", "task_args": {"dims": 3}}, "unknown field"),
        ({"task": "stories", "chance": "zero"}, "with zero"),
        ({"task": "least-squares", "chance": "zero", "reference": "rigde"}, "unknown model"),
        ({"task": "least-squares", "chance": "zero", "metrics": ["nope"]}, "unknown metric"),
        ({"task": "least-squares", "chance": "zero", "shift": ["nosuch"]}, "unknown shift"),
    ],
)
def test_a_board_that_cannot_be_run_is_caught(board, reason):
    suite = Suite(name="one", version=1, summary="one board", board=({"name": "first", **board},))
    if reason is None:
        check_suite(suite)
        return
    with pytest.raises(ConformanceError, match=f"board first.*{reason}"):
        check_suite(suite)


def greet(name: str, loud: bool = False) -> None:
    """Greet."""


def takes_either(value: int | str) -> None:
    """Take what typer can't parse."""


def test_a_command_that_typer_cannot_run_is_caught():
    check_command(greet)
    with pytest.raises(ConformanceError, match="--help fails"):
        check_command(takes_either)
    with pytest.raises(ConformanceError, match="is not a function"):
        check_command(sys)


ABOUT = '[tasks.ode-operator]\ntitle = "ODEs"\ntext = "One. Two."\ngroup = "Dynamics"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ABOUT.replace("ode-operator", "ode-operater"), "the plugin lacks: task ode-operater"),
        (ABOUT.replace('title = "ODEs"', "titel = 1"), "unknown field 'tasks.ode-operator.titel'"),
        (ABOUT + 'papers = ["nobody"]', "there is no paper 'nobody'"),
        (ABOUT + '[arguments]\nequaton = "equation"', "nothing takes: equaton"),
        (ABOUT + 'arguments = { equaton = "x" }', "task ode-operator does not take: equaton"),
        (ABOUT + 'metrics = { squared_eror = "error" }', "did you mean squared_error?"),
        ("[tasks", "about.toml"),
    ],
)
def test_texts_that_are_not_valid_or_describe_nothing_are_refused(
    tmp_path, monkeypatch, text, message
):
    (plugin,) = (p for p in host().plugins if p.name == "odes")
    assert parts.check_about(plugin) == "of 1 of 1 tasks and models"
    path = tmp_path / "about.toml"
    path.write_text(text)
    monkeypatch.setattr(descriptions, "about_path", lambda plugin: path)
    with pytest.raises((UsageError, ConformanceError), match=re.escape(message)):
        parts.check_about(plugin)
