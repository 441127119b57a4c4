"""Solvers of least squares where XᵀX has a null space."""

from __future__ import annotations

import pytest
import torch

from iclbench import Architecture
from iclbench.api.random import torch_generator
from iclbench.plugins import host
from iclbench_solvers.solver import Examples

ITERATIONS = {
    "least-squares-qr": {},
    "gradient-descent": {"steps": 100},
    "conjugate-gradient": {"steps": 12},
    "newton": {"steps": 40},
}


@pytest.mark.parametrize("examples", [1, 3, 12])
def test_further_newton_steps_change_nothing(examples):
    """On the null space of XᵀX, rounding errors would double with every step."""
    x, y = (torch.randn(64, examples, k, generator=torch_generator("cpu", "test", examples))
            for k in (7, 1))  # fmt: skip
    solver = host().load("model", "newton", Architecture)()
    few, many = (solver.weights(Examples(x, y), solver.Config(steps=s)) for s in (60, 300))
    torch.testing.assert_close(many, few, rtol=1e-3, atol=1e-4)
    exact = torch.linalg.pinv(x.double()) @ y.double()
    torch.testing.assert_close(many.double(), exact, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", ITERATIONS)
def test_prompts_without_any_inputs_have_zero_weights(name):
    solver = host().load("model", name, Architecture)()
    for examples in (3, 5):
        blank = Examples(torch.zeros(2, examples, 4), torch.ones(2, examples, 1))
        weights = solver.weights(blank, solver.Config(**ITERATIONS[name]))
        assert torch.equal(weights, torch.zeros(2, 4, 1))
