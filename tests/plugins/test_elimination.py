"""Gaussian elimination from ReLU networks, compared with the paper and with exact solutions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from iclbench import Signature, UsageError, run
from iclbench.api.config import parse_config
from iclbench.precision import default_dtype
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_linear_attention.elimination import (
    Elimination,
    EliminationConfig,
    GaussianEliminationNetwork,
    InverseSquare,
    geometric_knots,
)


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def hard_sigmoids(x, knots):
    """Return σ_f of equations 93–117 for f = 1/x² and y_{n+1} = 0."""
    knots = np.append(knots, 2 * knots[-1])
    y = np.append(knots[:-1] ** -2.0, 0.0)
    total = np.zeros_like(x)
    for k in range(1, len(knots)):
        slope = (y[k] - y[k - 1]) / (knots[k] - knots[k - 1])
        total += np.maximum(slope * (x - knots[k]), 0) - np.maximum(slope * (x - knots[k - 1]), 0)
        total += np.maximum(slope * (x + knots[k]), 0) - np.maximum(slope * (x + knots[k - 1]), 0)
    return total


@given(count=st.integers(2, 40), seed=st.integers(0, 99))
def test_network_equals_the_paper_s_sum_of_hard_sigmoids(count, seed):
    knots = geometric_knots(0.5, 8.0, count)
    x = np.random.default_rng(seed).uniform(-12, 12, 50)
    values = InverseSquare(knots)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(values, hard_sigmoids(x, knots.numpy()), atol=1e-12)


def test_network_interpolates_its_knots_and_is_constant_outside():
    knots = geometric_knots(0.5, 8.0, 12)
    network = InverseSquare(knots)
    torch.testing.assert_close(network(knots), knots**-2)
    torch.testing.assert_close(network(-knots), knots**-2)
    assert torch.allclose(network(torch.tensor([0.0, 0.1, -0.3])), torch.tensor(4.0))
    assert (network(torch.tensor([100.0, -100.0])) == 0).all()


def test_in_float32_no_digits_cancel():
    """Every unit but the first, which bounds the function below x₁, adds to the others."""
    with default_dtype(torch.float32):
        network = InverseSquare(geometric_knots(1e-2, 1e3, 30_000))
    assert (network.slopes[1:] > 0).all()
    x = geometric_knots(1.0, 990.0, 2000).float()
    exact = InverseSquare(network.knots[:-1].double())(x.double())
    assert ((network(x).double() - exact) / exact).abs().max() < 4 * torch.finfo(torch.float32).eps


def test_relative_error_between_geometric_knots():
    """It is 0.75 ln(ratio)² to leading order, the error of a chord."""
    count = 1000
    knots = geometric_knots(0.1, 10.0, count)
    x = torch.linspace(0.1, 10.0, 20_001)
    error = (InverseSquare(knots)(x) * x**2 - 1).max()
    ratio = np.log(100.0) / (count - 1)
    assert error == pytest.approx(0.75 * ratio**2, rel=0.01)


def well_conditioned(size, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.linalg.qr(torch.randn(n, size, size, generator=generator))[0]
    F = (vectors * torch.logspace(0, 1, size)) @ vectors.mT
    x = torch.randn(n, size, generator=generator)
    return F, (F @ x[..., None])[..., 0], x


def test_default_knots_give_six_digits_on_well_conditioned_systems():
    F, a, x = well_conditioned(5, 256)
    config = EliminationConfig()
    network = Elimination(geometric_knots(config.low, config.high, config.knots))
    for sign in (1.0, -1.0):
        solution, outside = network(sign * F, sign * a)
        relative = (solution - x).norm(dim=1) / x.norm(dim=1)
        assert not outside.any()
        assert 0 < relative.max() < 1e-6


@given(size=st.integers(1, 6), seed=st.integers(0, 20))
def test_it_solves_systems_of_any_size(size, seed):
    F, a, x = well_conditioned(size, 4, seed)
    solution, outside = Elimination(geometric_knots(1e-2, 1e3, 3000))(F, a)
    assert not outside.any()
    assert ((solution - x).norm(dim=1) < 2e-4 * x.norm(dim=1)).all()


def test_error_falls_with_the_square_of_the_number_of_knots():
    F, a, x = well_conditioned(5, 64)
    errors = [
        (Elimination(geometric_knots(1e-2, 1e3, n))(F, a)[0] - x).norm() for n in (1000, 10_000)
    ]
    assert 80 < errors[0] / errors[1] < 125


class System(NamedTuple):
    a: Tensor
    b: Tensor


def test_pivot_outside_the_knots_is_reported_and_answered_with_nan(capsys):
    signature = Signature(System, "solution", 2, 3, 2, (0,))
    solver, config = GaussianEliminationNetwork(), EliminationConfig(knots=500, low=0.1, high=10)
    assert solver.supports(signature, config) is None
    a = torch.tensor([[[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1e-3]], [[50.0, 0], [0, 1]]])
    answer = solver.build(signature, config)(System(a, torch.ones(3, 2)))
    assert answer.shape == (3, 1, 2)
    np.testing.assert_allclose(answer[0, 0].numpy(), [1.0, 0.5], rtol=1e-3)
    assert answer[1:].isnan().all()
    assert "2 of 3 prompts have a pivot outside 0.1 … 10" in capsys.readouterr().err


class PaddedSystem(NamedTuple):
    a: Tensor
    b: Tensor
    size: Tensor


def test_padded_systems_have_the_answer_of_the_unpadded_ones(capsys):
    F, b, _ = well_conditioned(3, 4)
    solver, config = GaussianEliminationNetwork(), EliminationConfig(knots=500)
    model = solver.build(Signature(PaddedSystem, "solution", 5, 6, 5, (0,)), config)
    padded = PaddedSystem(
        torch.nn.functional.pad(F, (0, 2, 0, 2)),
        torch.nn.functional.pad(b, (0, 2)),
        torch.full((4,), 3),
    )
    expected = model(System(F, b))
    torch.testing.assert_close(model(padded), torch.nn.functional.pad(expected, (0, 2)))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("pivot", [0.4999, 8.01, 9.0, -9.0, float("nan")])
def test_pivots_beyond_the_first_and_last_knot_are_outside(pivot):
    """This includes those between x_n and x_{n+1}, where the network falls to 0."""
    network = InverseSquare(geometric_knots(0.5, 8.0, 12))
    assert network.outside(torch.tensor([pivot])).all()
    assert not network.outside(torch.tensor([0.5, -0.5, 8.0, -8.0])).any()


@pytest.mark.parametrize(
    ("low", "high", "count"), [(10.0, 30.0, 10_000_000), (1.0, 2.0, 10_000_000), (1e-30, 1e3, 1000)]
)
def test_knots_that_the_dtype_can_t_distinguish_are_refused(low, high, count):
    with (
        default_dtype(torch.float32),
        pytest.raises(UsageError, match="too close together or too small for float32"),
    ):
        InverseSquare(geometric_knots(low, high, count))


def test_float32_gives_almost_six_digits():
    F, a, x = well_conditioned(5, 256)
    with default_dtype(torch.float32):
        network = Elimination(geometric_knots(1e-2, 1e3, 30_000))
        solution, outside = network(F.float(), a.float())
    assert not outside.any()
    assert ((solution - x).norm(dim=1) < 2e-6 * x.norm(dim=1)).all()


def test_on_ridge_it_is_close_to_the_estimator(tmp_path):
    task = RidgeRegression(RidgeConfig())
    record = run(
        model="gaussian-elimination-network",
        task=task.name,
        dtype="float64",
        eval_prompts=64,
        out=tmp_path,
    )
    assert record.spec.origin == "solver"
    assert record.metrics["squared_error"].median < 1e-12


def test_unsupported_arguments_and_targets_are_refused():
    with pytest.raises(UsageError, match="low must be less than high"):
        parse_config(EliminationConfig, {"low": 2, "high": 1}, "model x")
    solver, config = GaussianEliminationNetwork(), EliminationConfig()
    assert "not query" in solver.supports(Signature(System, "query", 2, 3, 2, (0,)), config)
