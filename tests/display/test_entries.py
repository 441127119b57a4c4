"""`iclbench describe`: every kind of entry reads as documentation, without Python's notation."""

from __future__ import annotations

import json
import re

import pytest

from iclbench.cli.describe import KINDS
from iclbench.display.arguments import kind_of, recipe_summary
from iclbench.display.entries import describe
from iclbench.display.lookup import example_of, kinds_of, known_names
from iclbench.plugins import host

#: An entry of every kind.
NAMES = {
    "model": "transformer",
    "task": "least-squares",
    "recipe": "quick",
    "suite": "smoke",
    "metric": "calibration",
    "grader": "text-statistics",
    "executor": "local",
    "tracker": "tensorboard",
    "command": "features",
    "plugin": "transformer",
}


def test_every_kind_is_covered():
    assert tuple(NAMES) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_described_within_80_columns(cli, monkeypatch, kind):
    monkeypatch.setenv("COLUMNS", "80")
    outcome = cli("describe", kind, NAMES[kind])
    assert outcome.code == 0
    # Whoever is the first to use a task's data is told that they were packed or prepared.
    told = (": packed ", ": prepared ")
    assert [s for s in outcome.err.splitlines() if not any(word in s for word in told)] == []
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"{NAMES[kind]}: ")
    assert max(len(line) for line in lines if not line.startswith("$ ")) <= 80
    for notation in ("<class", "typing.", "Literal[", "Recipe(", "Signature(", "None"):
        assert notation not in outcome.out


def test_arguments_have_a_value_a_default_and_a_meaning(cli):
    text = cli("describe", "transformer").out
    assert re.search(r"^heads +integer, ≥ 1 +1 +number of attention heads", text, re.M)
    assert re.search(r"^attention +softmax \| linear +softmax ", text, re.M)
    assert re.search(r"^layer_norm +true or false +true ", text, re.M)
    assert re.search(r"^head_width +integer or null, ≥ 1 +null ", text, re.M)
    task = cli("describe", "least-squares").out
    assert re.search(r"^ranked by +the mean digits of squared_error$", task, re.M)
    assert re.search(r"^paper +1,000,000 steps × 256 prompts", task, re.M)


def test_the_command_of_a_model_gives_what_has_no_default(cli):
    last = cli("describe", "discrete-mmse").out.splitlines()[-1]
    assert last == "$ iclbench run --model discrete-mmse --task TASK --model-args tasks=VALUE"


def test_constructions_are_described_with_their_arguments(cli):
    text = cli("describe", "baseconv").out
    assert "--weights gd-causal: T steps of gradient descent" in text
    assert re.search(r"^steps +integer, ≥ 1 +200 ", text, re.M)


def test_a_recipe_shows_what_it_changes(cli):
    text = cli("describe", "quick").out
    assert re.search(r"^steps +1500 +number of updates", text, re.M)
    assert "clip" not in text


def test_recipes_of_tasks_are_found_and_equal_ones_are_one(cli):
    text = cli("describe", "gauss-newton").out
    assert text.startswith("gauss-newton: recipe of single tasks")
    assert cli("describe", "recipe", "gauss-newton").out == text
    (line,) = [line for line in text.splitlines() if line.startswith("For ")]
    assert {"least-squares", "gradient"} <= set(line.removeprefix("For ").split(", "))


def test_ls_recipes_lists_those_of_tasks_too(cli):
    rows = json.loads(cli("ls", "recipes", "--format", "json").out)
    own = {(row["task"], row["name"]) for row in rows if row["task"]}
    assert ("least-squares", "paper") in own
    assert {row["name"] for row in rows if not row["task"]} >= {"smoke", "quick"}
    assert all(row["summary"] for row in rows)
    for name in {row["name"] for row in rows}:
        assert cli("describe", "recipe", name).code == 0


def test_unknown_names_are_answered_with_the_nearest(cli):
    assert "did you mean 'transformer'" in cli("describe", "transfomer").err
    assert "did you mean 'precision'" in cli("describe", "recipe", "precison").err
    assert cli("describe", "recipe", "transformer").code == 2
    two = cli("describe", "model", "transformer", "lsa")
    assert (two.code, "give one name" in two.err) == (2, True)


def test_a_plugin_whose_supports_raises_is_described(provide):
    from iclbench_solvers.simple import Zero

    class Raising(Zero):
        name = "raising"

        def supports(self, signature, config):
            raise RuntimeError("no luck")

    provide("model", "raising", Raising)
    parts = list(describe(host(), "model", "raising"))
    assert parts[-1] == "$ iclbench run --model raising --task TASK"
    parts = list(describe(host(), "task", "least-squares"))
    assert not any("raising" in part for part in parts if isinstance(part, str))


def test_a_task_names_the_models_that_run_on_it():
    def models(task):
        start = "With default arguments these models run on it: "
        lines = [part for part in describe(host(), "task", task) if isinstance(part, str)]
        (line,) = [line for line in lines if line.startswith(start)]
        return set(line.removeprefix(start).rstrip(".").split(", "))

    assert {"transformer", "least-squares-qr", "linear-transformer"} <= models("least-squares")
    assert "cholesky" not in models("least-squares")
    assert models("linear-system") >= {"cholesky", "transformer"}


@pytest.mark.parametrize("broken", ["__init__", "signature"])
def test_a_broken_task_stops_no_description_of_a_model(cli, provide, broken):
    from iclbench_least_squares.fixed import LeastSquares

    def fail(*_):
        raise KeyError("dim")

    member = property(fail) if broken == "signature" else fail
    task = type("Broken", (LeastSquares,), {"name": "broken", broken: member})
    provide("task", "broken", task)
    described = cli("describe", "model", "transformer")
    assert described.code == 0, described.err
    assert "least-squares" in described.out
    assert "broken" not in described.out
    own = cli("describe", "task", "broken")
    assert (own.code, "With default arguments: KeyError: 'dim'" in own.out) == (0, True)


def test_names_are_looked_up_in_every_kind():
    assert kinds_of(host(), "smoke") == ["recipe", "suite"]
    assert kinds_of(host(), "transformer") == ["model"]
    assert kinds_of(host(), "builtins") == ["plugin"]
    assert "paper" in known_names(host(), "recipe")


def test_types_are_written_in_words():
    assert kind_of(tuple[int, ...]) == "list of integer"
    assert kind_of(dict[str, int]) == "table"
    assert kind_of(float | None) == "number or null"


def test_a_recipe_is_summarized_in_a_line():
    from iclbench.api.recipe import QUICK

    assert recipe_summary(QUICK) == "1,500 steps × 64 prompts, adam 0.0007, cosine"


@pytest.mark.parametrize(
    ("tasks", "example"),
    [
        (["affine", "linear-system", "least-squares"], "least-squares"),
        (["decision-tree", "word-problem"], "decision-tree"),
        ([], "TASK"),
    ],
)
def test_an_example_is_on_the_task_that_a_suite_lists_first(tasks, example):
    assert example_of(host(), tasks) == example
