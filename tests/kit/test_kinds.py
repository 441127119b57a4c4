"""What the checks of an entry say beside that they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from pydantic import Field
from torch import nn

from iclbench import Architecture, Config, Construction, Executor, RunSpec, UsageError
from iclbench.kit.kinds import checks_of_entry
from iclbench.kit.trials import NotCheckedError
from iclbench.runs.checks import ConformanceError
from iclbench.runs.plan import resolve
from iclbench.sweeps.tuning.space import search_space
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


class NarrowConfig(Config):
    layers: int = Field(1, le=1, description="layers")


class Narrow(OneMatrixModel):
    name = "narrow"
    constructions = {}
    Config = NarrowConfig


def test_a_model_keeps_its_default_where_it_refuses_a_small_value(provide):
    provide("model", "narrow", Narrow)
    checks = dict(checks_of_entry("model", "narrow"))
    assert "least-squares" in checks["module"]()
    assert checks["run"]().endswith("its record verifies")


class Misspelled(Narrow):
    name = "misspelled"
    search_args = {"layer": (1,)}


def test_arguments_that_a_search_would_not_find_are_named(provide):
    provide("model", "misspelled", Misspelled)
    with pytest.raises(ConformanceError, match="search_args names layer, which Config lacks"):
        dict(checks_of_entry("model", "misspelled"))["arguments"]()
    plan = resolve(RunSpec(model="misspelled", task="least-squares"))
    with pytest.raises(UsageError, match="search_args of misspelled names layer"):
        search_space(plan, {})


class Addressed(Config):
    address: str = Field(description="where it is")


class Remote(Executor):
    """An executor whose package is missing; `address` has no default where `required`."""

    name = "remote"

    def map(self, function, jobs, workers):
        raise UsageError("install the package of the cluster")
        yield


@pytest.mark.parametrize(
    ("config", "reason"),
    [(Config, "it can't run here: install the package"), (Addressed, "address has no default")],
)
def test_an_executor_that_cant_be_used_here_is_not_checked(provide, config, reason):
    provide("executor", "remote", type("Remote", (Remote,), {"Config": config}))
    with pytest.raises(NotCheckedError, match=reason):
        dict(checks_of_entry("executor", "remote"))["jobs"]()
