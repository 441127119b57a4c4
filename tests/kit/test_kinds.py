"""What the checks of an entry say beside that they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pydantic import Field
from torch import nn

from iclbench import (
    Architecture,
    Config,
    ConformanceError,
    Construction,
    Executor,
    Grader,
    Recipe,
    RunError,
    Tracker,
    UsageError,
)
from iclbench.kit.kinds import checks_of_entry
from iclbench.kit.trials import NotCheckedError
from iclbench_least_squares.fixed import LeastSquares


class Odd(LeastSquares):
    name = "odd-target"

    @property
    def signature(self):
        return replace(super().signature, target="question")


def test_a_target_that_no_shipped_solver_knows_is_noted(provide):
    provide("task", "odd-target", Odd)
    text = dict(checks_of_entry("task", "odd-target"))["prompts"]()
    assert text.endswith("; no shipped solver answers its target 'question'")


class Lacks(Construction):
    """The weights of a step, without one of its tensors where `lacks`."""

    def __init__(self, lacks):
        self.lacks = lacks

    def build(self, signature, args, task):
        if "x" not in signature.shapes:
            raise UsageError("the prompts have no x")
        state = OneMatrix(signature.shapes["x"][1]).double().state_dict()
        return {}, dict(list(state.items())[self.lacks :])


class OneMatrix(nn.Module):
    def __init__(self, dimension):
        super().__init__()
        self.w = nn.Parameter(torch.eye(dimension))

    def forward(self, prompt):
        return prompt.query @ self.w @ prompt.x.mT @ prompt.y


class OneMatrixModel(Architecture):
    name = "one-matrix"
    constructions = {"whole": Lacks(0), "partial": Lacks(1)}

    def supports(self, signature, config):
        fits = signature.target == "query" and {"x", "y", "query"} <= set(signature.shapes)
        return None if fits else "it needs a query"

    def build(self, signature, config):
        return OneMatrix(signature.shapes["x"][1])


def test_a_construction_that_does_not_fit_its_model_fails(provide):
    provide("model", "one-matrix", OneMatrixModel)
    checks = dict(checks_of_entry("model", "one-matrix"))
    assert checks["weights whole"]().endswith("its record verifies")
    with pytest.raises(UsageError, match="w is missing"):
        checks["weights partial"]()


class Narrow(Config):
    layers: int = Field(1, description="number of layers", le=1)
    width: int = Field(8, description="width", le=8)


class NarrowModel(OneMatrixModel):
    name = "narrow"
    constructions = {}
    Config = Narrow


def test_a_model_that_refuses_the_small_arguments_of_the_kit_is_checked_without_them(provide):
    provide("model", "narrow", NarrowModel)
    checks = dict(checks_of_entry("model", "narrow"))
    assert checks["module"]().startswith("on ")
    assert checks["run"]().endswith("its record verifies")


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"depth": (1, 2)}, "search_args names depth, which Config lacks"),
        (("layers",), "search_args must map names of arguments to the values to try"),
        ({"layers": (1, 5)}, "search_args has layers=5, which is refused"),
    ],
)
def test_search_args_that_no_search_could_use_are_named(provide, monkeypatch, values, reason):
    monkeypatch.setattr(NarrowModel, "search_args", values, raising=False)
    provide("model", "narrow", NarrowModel)
    with pytest.raises(ConformanceError, match=reason):
        dict(checks_of_entry("model", "narrow"))["arguments"]()


class Needed(Config):
    address: str = Field(description="where it is")


class Judge(Grader):
    name = "judge"
    Config = Needed

    def grade(self, completions, folder):
        return {}


class Elsewhere(Executor):
    name = "elsewhere"
    Config = Needed

    def map(self, function, jobs, workers):
        yield from ()


@pytest.mark.parametrize(
    ("kind", "entry", "check"), [("grader", Judge, "scores"), ("executor", Elsewhere, "jobs")]
)
def test_what_needs_an_argument_is_not_checked(provide, kind, entry, check):
    provide(kind, entry.name, entry)
    with pytest.raises(NotCheckedError, match="address has no default; call check_"):
        dict(checks_of_entry(kind, entry.name))[check]()


class NoCluster(Executor):
    name = "no-cluster"

    def map(self, function, jobs, workers):
        raise RunError("there is no squeue on this machine")
        yield


def test_an_executor_without_its_cluster_is_not_checked(provide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    provide("executor", "no-cluster", NoCluster)
    with pytest.raises(NotCheckedError, match="can't run jobs here: there is no squeue"):
        dict(checks_of_entry("executor", "no-cluster"))["jobs"]()


STAGED = Recipe(
    steps=100,
    batch=4,
    stages=({"steps": 40, "task_args": {}},),
)


def test_a_recipe_with_stages_is_checked(provide):
    provide("recipe", "staged", STAGED)
    assert dict(checks_of_entry("recipe", "staged"))["training"]().startswith("two steps of ")


class CannotFail(Tracker):
    name = "cannot-fail"

    def start(self, spec, settings):
        pass

    def log(self, step, values):
        pass

    def finish(self, record, summary):
        pass

    def fail(self, error):
        raise ValueError("what now?")


def test_a_tracker_is_told_of_a_run_that_fails(provide):
    provide("tracker", "cannot-fail", CannotFail)
    with pytest.raises(ConformanceError, match="of a run that fails: ValueError: what now"):
        dict(checks_of_entry("tracker", "cannot-fail"))["run"]()
