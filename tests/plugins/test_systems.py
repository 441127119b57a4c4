"""Every solver of linear systems against its formula, a bound or exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from iclbench import LinearSystem
from iclbench.api.architecture import Architecture
from iclbench.api.config import parse_config
from iclbench.plugins import host
from iclbench.precision import default_dtype
from iclbench_linear_systems.task import LinearSystemConfig, LinearSystems

ITERATIVE = [
    "richardson",
    "chebyshev",
    "jacobi",
    "steepest-descent",
    "conjugate-gradient",
    "newton",
]


def task(**config) -> LinearSystems:
    return LinearSystems(parse_config(LinearSystemConfig, config, "task"))


def solver(name, **config):
    architecture = host().load("model", name, Architecture)()
    return architecture.build(task().signature, parse_config(architecture.Config, config, name))


def systems(n=6, count=20, **config):
    (batch,) = task(sizes=n, **config).evaluation_batches(count, 0, torch.float64)
    return batch


def residual_polynomial(name, a, b, x0, steps, damping=None):
    """The iterate of one system, computed independently in numpy."""
    values, basis = np.linalg.eigh(a)
    low, high = values[0], values[-1]
    error = np.linalg.solve(a, b) - x0
    if name == "richardson":
        left = (1 - 2 * values / (low + high)) ** steps
    elif name == "chebyshev":
        top = np.polynomial.Chebyshev.basis(steps, domain=[low, high])
        left = top(values) / top(0.0)
    elif name == "jacobi":
        scaled = a / np.diag(a)[:, None]
        extremes = np.sort(np.linalg.eigvals(scaled).real)[[0, -1]]
        matrix = np.eye(len(a)) - (2 / extremes.sum() if damping is None else damping) * scaled
        return np.linalg.solve(a, b) - np.linalg.matrix_power(matrix, steps) @ error
    else:
        # 1 − λX_k squares with every step of Newton–Schulz.
        left = (1 - (values / high) ** 2) ** (2**steps)
        left = left if steps else np.ones_like(values)
    return np.linalg.solve(a, b) - basis @ (left * (basis.T @ error))


@pytest.mark.parametrize("name", ["richardson", "chebyshev", "jacobi", "newton"])
@pytest.mark.parametrize("start", ["zero", "normal"])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_iterates_follow_the_formula(name, start, steps):
    batch = systems(start=start)
    actual = solver(name, steps=steps)(batch.prompt)
    assert actual.shape == (20, 1, 6)
    for i in range(20):
        a, b, x0 = (t[i].numpy() for t in batch.prompt[:3])
        expected = residual_polynomial(name, a, b, x0, steps)
        if name == "newton" and not steps:
            expected = x0
        np.testing.assert_allclose(actual[i, 0].numpy(), expected, atol=1e-11)


@pytest.mark.parametrize("steps", [0, 1, 4])
@pytest.mark.parametrize(("name", "more"), [("richardson", 0), ("chebyshev", 0),
                                            ("conjugate-gradient", 1)])  # fmt: skip
def test_an_iteration_costs_one_product(name, more, steps):
    prompt = systems(n=6, count=1).prompt
    with FlopCounterMode(display=False) as counter:
        solver(name, steps=steps)(prompt)
    assert counter.get_total_flops() == 2 * 36 * (steps + more)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_conjugate_gradient_minimizes_the_energy_error_in_the_krylov_space(steps):
    batch = systems(start="normal")
    actual = solver("conjugate-gradient", steps=steps)(batch.prompt)[:, 0].numpy()
    for i in range(20):
        a, b, x0 = (t[i].numpy() for t in batch.prompt[:3])
        krylov = np.stack([np.linalg.matrix_power(a, k) @ (b - a @ x0) for k in range(steps)], 1)
        best = np.linalg.solve(krylov.T @ a @ krylov, krylov.T @ (b - a @ x0))
        np.testing.assert_allclose(actual[i], x0 + krylov @ best, atol=1e-8)


def test_steepest_descent_takes_the_best_step_along_the_residual():
    batch = systems(start="normal")
    path = solver("steepest-descent", steps=3).trajectory(batch.prompt).numpy()
    for i in range(20):
        a, b = batch.prompt.a[i].numpy(), batch.prompt.b[i].numpy()
        for before, after in zip(path[i, :-1], path[i, 1:], strict=True):
            # The next residual is orthogonal to the direction that was taken.
            assert (b - a @ after) @ (after - before) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", [*ITERATIVE, "cholesky"])
def test_padding_does_not_affect_results(name):
    batch = systems(n=4, start="normal")
    prompt = batch.prompt
    grown = LinearSystem(
        torch.nn.functional.pad(prompt.a, (0, 3, 0, 3)),
        torch.nn.functional.pad(prompt.b, (0, 3)),
        torch.nn.functional.pad(prompt.x0, (0, 3)),
        prompt.size,
    )
    model = solver(name)
    actual, expected = model(grown), model(prompt)
    torch.testing.assert_close(actual[..., :4], expected, atol=1e-12, rtol=1e-10)
    assert (actual[..., 4:] == 0).all()


@pytest.mark.parametrize("name", ["conjugate-gradient", "newton", "steepest-descent", "chebyshev"])
def test_converged_iteration_stays(name):
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-4)):
        (batch,) = task(sizes=9).evaluation_batches(20, 0, dtype)
        actual = solver(name, steps=1200)(batch.prompt).double()
        torch.testing.assert_close(actual, batch.target, atol=bound, rtol=0)


@pytest.mark.parametrize("damping", [1.0, 0.7])
def test_jacobi_takes_the_damping_that_is_asked_for(damping):
    batch = systems()
    actual = solver("jacobi", steps=3, damping=damping)(batch.prompt)
    for i in range(20):
        a, b, x0 = (t[i].numpy() for t in batch.prompt[:3])
        expected = residual_polynomial("jacobi", a, b, x0, 3, damping)
        np.testing.assert_allclose(actual[i, 0].numpy(), expected, atol=1e-11)


def test_damped_jacobi_always_converges():
    """Without damping it diverges on some systems: where 2D − A is not positive definite."""
    batch = systems(n=9, count=64)
    errors = {}
    for damping in (None, 1.0):
        x = solver("jacobi", steps=400, damping=damping)(batch.prompt)
        errors[damping] = float((x - batch.target).abs().max())
    assert errors[None] < 1e-9
    assert not errors[1.0] < 1.0


def test_one_eigenvalue_needs_one_step():
    batch = systems(condition_number=1)
    for name in ("richardson", "chebyshev", "steepest-descent", "conjugate-gradient", "newton"):
        actual = solver(name, steps=1)(batch.prompt)
        torch.testing.assert_close(actual, batch.target, atol=1e-12, rtol=0)


def test_gaussian_elimination_network_solves_them():
    batch = systems(n=5)
    with default_dtype(torch.float64):
        actual = solver("gaussian-elimination-network")(batch.prompt)
    assert float((actual - batch.target).abs().max()) < 1e-5
