"""What the checks of an entry say beside that they hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from iclbench import Architecture, Construction, UsageError
from iclbench.kit.kinds import checks_of_entry
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
