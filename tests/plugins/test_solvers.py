"""The regression solvers against numpy in float64 and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import Architecture, LinearSystem, Signature, Text
from iclbench.plugins import host
from iclbench.runs.checks import check_architecture
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.gradient_steps import GradientSteps, StepsConfig
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_solvers.iterative import optimal_step
from iclbench_solvers.solver import Examples, examples_of

EXACT = {
    "least-squares-qr": {},
    "least-squares-cholesky": {},
    "gradient-descent": {"steps": 100},
    "conjugate-gradient": {"steps": 12},
    "newton": {"steps": 40},
}
LINEAR = [*EXACT, "ridge", "averaging", "zero"]
ALL = [*LINEAR, "nearest-neighbours"]


def seen(x, y):
    return Examples(torch.from_numpy(x)[None], torch.from_numpy(y)[None])


def solve(name, prompt, signature, **config):
    solver = host().load("model", name, Architecture)()
    arguments = solver.Config(**config)
    assert solver.supports(signature, arguments) is None
    return solver.build(signature, arguments)(prompt)


def error(name, dtype=torch.float64, n=2048, target="query", **config):
    task = LeastSquares(FixedConfig(target=target))
    (batch,) = task.evaluation_batches(n, 0, dtype)
    prediction = solve(name, batch.prompt, task.signature, **config).double()
    return task.metrics(prediction, batch)[task.primary.metric].numpy()


@pytest.mark.parametrize("name", EXACT)
@given(examples=st.integers(1, 8), dim=st.integers(1, 5), seed=st.integers(0, 99))
def test_exact_solvers_find_the_minimum_norm_solution(name, examples, dim, seed):
    rng = np.random.default_rng(seed)
    # Singular values in [1, 2], so that every iteration has converged.
    left = np.linalg.qr(rng.standard_normal((examples, examples)))[0]
    right = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    rank = min(examples, dim)
    x = left[:, :rank] * np.linspace(1, 2, rank) @ right[:rank]
    y = rng.standard_normal((examples, 2))
    solver = host().load("model", name, Architecture)()
    config = solver.Config(**EXACT[name])
    actual = solver.weights(seen(x, y), config)
    expected = np.linalg.pinv(x) @ y
    np.testing.assert_allclose(actual[0].numpy(), expected, atol=1e-10)


@given(examples=st.integers(1, 8), dim=st.integers(1, 5), seed=st.integers(0, 99))
def test_ridge_solves_its_normal_equations(examples, dim, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((examples, dim)), rng.standard_normal((examples, 1))
    solver = host().load("model", "ridge", Architecture)()
    config = solver.Config(ridge=0.3)
    actual = solver.weights(seen(x, y), config)
    expected = np.linalg.solve(x.T @ x + 0.3 * np.eye(dim), x.T @ y)
    np.testing.assert_allclose(actual[0].numpy(), expected, atol=1e-12)


def test_gradient_descent_follows_the_paper():
    """Two steps by hand in numpy, for both normalizations (Liu et al., eq. 45)."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((7, 3)), rng.standard_normal((7, 1))
    solver = host().load("model", "gradient-descent", Architecture)()
    for normalize, scale in (("mean", 1 / 7), ("sum", 1.0)):
        config = solver.Config(steps=2, step_size=0.05, normalize=normalize)
        w = np.zeros((3, 1))
        for _ in range(2):
            w = w - 0.05 * scale * x.T @ (x @ w - y)
        actual = solver.weights(seen(x, y), config)
        np.testing.assert_allclose(actual[0].numpy(), w, atol=1e-14)


def test_one_gradient_step_has_its_closed_form():
    """η = N/(N+D+1): E[err²] = D(D+1)/(N+D+1), 1.1538 at D = 5, N = 20."""
    errors = error("gradient-descent", n=16384, steps=1, step_size=20 / 26)
    assert abs(errors.mean() - 30 / 26) < 4 * errors.std() / 128


def test_averaging_and_zero_have_their_closed_forms():
    averaging, zero = error("averaging", n=16384), error("zero", n=16384)
    assert abs(averaging.mean() - 30 / 20) < 4 * averaging.std() / 128
    assert abs(zero.mean() - 5) < 4 * zero.std() / 128


def test_least_squares_qr_reaches_machine_precision():
    assert error("least-squares-qr", torch.float32).mean() <= 1e-12
    assert error("least-squares-qr", torch.float64).mean() <= 1e-28


def test_one_refinement_of_cholesky_is_more_precise_than_qr():
    """Median squared errors in float32: 5e-15 against 5e-14 (and 7e-14 unrefined)."""
    refined, qr = (
        np.median(error(name, torch.float32))
        for name in ("least-squares-cholesky", "least-squares-qr")
    )
    assert refined < 7e-15
    assert qr > 2e-14
    assert np.median(error("least-squares-cholesky", torch.float32, refinements=0)) > 2e-14


def test_gradient_descent_reaches_machine_precision():
    errors = error("gradient-descent", torch.float32, steps=400)
    assert np.median(errors) <= 2e-13


@pytest.mark.parametrize("name", LINEAR)
def test_weights_and_query_answers_agree(name):
    weights = LeastSquares(FixedConfig(target="weights"))
    (batch,) = weights.evaluation_batches(16, 0, torch.float64)
    w = solve(name, batch.prompt, weights.signature)
    at_query = solve(name, batch.prompt, LeastSquares(FixedConfig()).signature)
    assert torch.allclose(batch.prompt.query @ w.mT, at_query)


@pytest.mark.parametrize("name", ALL)
def test_prefix_answer_uses_only_that_prefix(name):
    """Answer k equals that of a problem with the first k examples only."""
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=3, examples=6))
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    every = solve(name, batch.prompt, task.signature)
    fixed = LeastSquares(FixedConfig(dim=3)).signature
    for k in range(1, 6):
        shorter = batch.prompt._replace(
            x=batch.prompt.x[:, :k], y=batch.prompt.y[:, :k], query=batch.prompt.x[:, k : k + 1]
        )
        alone = solve(name, shorter, fixed)
        assert torch.allclose(every[:, k], alone[:, 0])
    assert (every[:, 0] == 0).all()


def test_nearest_neighbours_average_the_nearest():
    task = LeastSquares(FixedConfig(dim=2, examples=5))
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    prompt = batch.prompt
    actual = solve("nearest-neighbours", prompt, task.signature, neighbours=2)
    for b in range(4):
        order = ((prompt.x[b] - prompt.query[b]) ** 2).sum(1).argsort()[:2]
        assert torch.allclose(actual[b, 0], prompt.y[b, order].mean(0))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_solvers_conform(name, dtype, monkeypatch):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        solver = host().load("model", name, Architecture)()
        for task in (
            LeastSquares(FixedConfig()),
            LeastSquaresPrefixes(LeastSquaresConfig(examples=6)),
        ):
            check_architecture(solver, task, solver.Config())
    finally:
        torch.set_default_dtype(before)


def test_unsupported_targets_are_named():
    text = Signature(Text, "token", 4, 0, 9, (0, 1, 2, 3), vocabulary=9)
    qr = host().load("model", "least-squares-qr", Architecture)()
    assert "needs x, y and query" in qr.supports(text, qr.Config())
    neighbours = host().load("model", "nearest-neighbours", Architecture)()
    weights = LeastSquares(FixedConfig(target="weights")).signature
    assert "not weights" in neighbours.supports(weights, neighbours.Config())
    gradient = host().load("model", "exact-gradient", Architecture)()
    assert "needs w, which the task" in gradient.supports(weights, gradient.Config())


def test_exactly_solved_system_stays_finite():
    """CGLS on a zero right-hand side does not divide by zero."""
    task = LeastSquares(FixedConfig())
    (batch,) = task.evaluation_batches(2, 0, torch.float32)
    prompt = batch.prompt._replace(y=torch.zeros_like(batch.prompt.y))
    assert (solve("conjugate-gradient", prompt, task.signature) == 0).all()


def test_gradient_descent_uses_the_prompt_s_penalty_and_step():
    """Equations 35 and 36 of the elsa paper, in numpy."""
    task = RidgeRegression(RidgeConfig(dim=3, examples=6, ridge=(0.1, 2.0)))
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    config = {"steps": 5, "step_size": "prompt", "normalize": "sum"}
    actual = solve("gradient-descent", batch.prompt, task.signature, **config)
    for i in range(4):
        x, y, u, ridge, step = (field[i].numpy() for field in batch.prompt[1:])
        w = np.zeros((3, 1))
        for _ in range(5):
            w = w - step * (-x.T @ y + x.T @ x @ w + ridge * w)
        np.testing.assert_allclose(actual[i].numpy(), u @ w, atol=1e-13)


def test_ridge_uses_the_prompt_s_penalty_by_default():
    task = RidgeRegression(RidgeConfig(dim=3, examples=6, ridge=(0.1, 2.0)))
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    prediction = solve("ridge", batch.prompt, task.signature)
    assert (prediction - batch.target).abs().max() < 1e-12
    other = solve("ridge", batch.prompt, task.signature, ridge=5.0)
    assert (other - batch.target).abs().max() > 1e-2


@given(examples=st.integers(1, 7), dim=st.integers(1, 5))
def test_optimal_step_includes_the_penalty(examples, dim):
    """The step equals the task's."""
    task = RidgeRegression(RidgeConfig(dim=dim, examples=examples, ridge=(0.1, 2.0)))
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    actual = optimal_step(examples_of(batch.prompt), 1.0)[:, 0, 0]
    np.testing.assert_allclose(actual.numpy(), batch.prompt.step.numpy(), rtol=1e-10)


def test_prompt_step_size_needs_a_prompt_with_one():
    solver = host().load("model", "gradient-descent", Architecture)()
    config = solver.Config(step_size="prompt", normalize="sum")
    assert "have no step" in solver.supports(LeastSquares(FixedConfig()).signature, config)


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_descent_from_the_prompt_s_weights_is_what_gradient_steps_asks_for(steps):
    task = GradientSteps(StepsConfig(dim=3, examples=5, steps=max(steps, 1), step_size=0.4))
    (batch,) = task.evaluation_batches(64, 0, torch.float64)
    answer = solve("gradient-descent", batch.prompt, task.signature, start="prompt", steps=steps,
                   step_size=0.4)  # fmt: skip
    expected = batch.prompt.w if steps == 0 else batch.target
    torch.testing.assert_close(answer, expected, rtol=1e-13, atol=1e-13)
    solver = host().load("model", "gradient-descent", Architecture)()
    reason = solver.supports(LeastSquares(FixedConfig()).signature, solver.Config(start="prompt"))
    assert reason == "start=prompt: the task's prompts have no w"


def rank_deficient(dtype):
    """Prompts of more dimensions, then of more examples; two of four have one of them twice."""
    rng = np.random.default_rng(5)
    for shape in ((4, 6, 8), (4, 8, 6)):
        x = rng.standard_normal(shape)
        wide = shape[1] < shape[2]
        for row in (0, 2):
            if wide:
                x[row, 3] = x[row, 1]
            else:
                x[row, :, 3] = x[row, :, 1]
        w = rng.standard_normal((4, shape[2], 1))
        yield torch.from_numpy(x).to(dtype), torch.from_numpy(x @ w).to(dtype)


@pytest.mark.parametrize(
    ("name", "args", "dtype", "most"),
    [
        ("least-squares-qr", {}, torch.float64, 1e-24),
        ("least-squares-qr", {}, torch.float32, 1e-8),
        ("gradient-descent", {"steps": 20_000}, torch.float64, 1e-16),
        ("gradient-descent", {"steps": 20_000}, torch.float32, 1e-6),
    ],
)
def test_a_prompt_without_full_rank_has_the_minimum_norm_solution(name, args, dtype, most):
    solver = host().load("model", name, Architecture)()
    for x, y in rank_deficient(dtype):
        w = solver.weights(Examples(x, y), solver.Config(**args)).double()
        expected = np.linalg.pinv(x.double().numpy(), rcond=1e-6) @ y.double().numpy()
        errors = (w - torch.from_numpy(expected)).square().sum(dim=(1, 2))
        assert errors.max() < most
        # A prompt's answer does not depend on the others.
        alone = solver.weights(Examples(x[2:3], y[2:3]), solver.Config(**args)).double()
        torch.testing.assert_close(alone[0], w[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ridge", "cholesky"])
def test_a_matrix_that_cannot_be_factored_spoils_its_own_prompt_alone(name):
    x = torch.eye(3, dtype=torch.float64).repeat(20, 1, 1)
    if name == "ridge":
        # Rounding makes some Gram matrices of rank 1 indefinite.
        rng = np.random.default_rng(0)
        x[1:] = torch.from_numpy(rng.normal(size=(19, 3, 1)) @ rng.normal(size=(19, 1, 3)))
        solver = host().load("model", name, Architecture)()
        w = solver.weights(Examples(x, x[:, :, :1]), solver.Config(ridge=1e-300))
    else:
        x[1:, 2] = 0.0
        prompt = LinearSystem(x, x[:, 0], x[:, 0], torch.full((20,), 3))
        w = host().load("model", name, Architecture)().build(None, None)(prompt)
    assert torch.isfinite(w[0]).all()
    assert torch.isnan(w[1:]).all(dim=(1, 2)).any()
