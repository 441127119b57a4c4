"""Solvers of least squares where XᵀX has a null space."""

from __future__ import annotations

import math

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


@pytest.mark.parametrize("scale", [1e-12, 1e-5, 1e6, 1e12])
@pytest.mark.parametrize("steps", [3, 10, 20])
def test_conjugate_gradients_follow_the_scale_of_prompts(scale, steps):
    """Squares of squares would leave float32."""
    x, y = (torch.randn(64, 20, k, generator=torch_generator("cpu", "test", k)) for k in (5, 1))
    unit = 2.0 ** round(math.log2(scale))  # so that nothing is rounded
    solver = host().load("model", "conjugate-gradient", Architecture)()
    config = solver.Config(steps=steps)
    plain = solver.weights(Examples(x, y), config)
    assert torch.equal(solver.weights(Examples(unit * x, y), config) * unit, plain)
    assert torch.equal(solver.weights(Examples(x, unit * y), config) / unit, plain)


@pytest.mark.parametrize("name", ITERATIONS)
def test_prompts_without_any_inputs_have_zero_weights(name):
    solver = host().load("model", name, Architecture)()
    for examples in (3, 5):
        blank = Examples(torch.zeros(2, examples, 4), torch.ones(2, examples, 1))
        weights = solver.weights(blank, solver.Config(**ITERATIONS[name]))
        assert torch.equal(weights, torch.zeros(2, 4, 1))
