"""ode-operator: the solver against closed forms, the process, the floor, and least squares."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from iclbench import EvaluationContext, UsageError, check_task, load_task, run
from iclbench_odes import chebyshev
from iclbench_odes.equations import coefficients, iterated_solution, problem_of, solution
from iclbench_odes.forcing import basis, conditional_mean, terms

EQUATIONS = ("full", "forced", "modulated", "second-order")
CONTEXT = EvaluationContext(torch.device("cpu"), torch.Generator())


def kernel(a, b, length):
    return torch.exp(-(a.unsqueeze(1) - b).square() / (2 * length))


def drawn(task, n):
    """Raw draws of evaluation: z, u0 (n, N + 1), coefficients (n, 4) in [−1, 1], and t (n,)."""
    raw = task.evaluation_draws(n, 0)
    return raw["c"], 2 * raw["u0"] - 1, 2 * raw["coefficients"] - 1, 2 * raw["t"] - 1


def function(z, length):
    """c of one example, as a function of an array of times."""
    return lambda s: basis(torch.from_numpy(np.atleast_1d(s)), length).numpy() @ z


def legendre(stop, count=120):
    """Nodes and weights of ∫₀^stop."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return stop * (nodes + 1) / 2, stop * weights / 2


def closed_form(a, c, u0, t):
    """u(t) = e^{A(t)}(u0 + ∫₀ᵗ e^{−A(s)}(a1 c + a4) ds), A(t) = a3 t + a2 ∫₀ᵗ c."""
    a1, a2, a3, a4 = a

    def exponents(times):
        s, w = legendre(1.0, 60)
        integrals = times * (c(np.outer(times, s).ravel()).reshape(len(times), -1) @ w)
        return a3 * times + a2 * integrals

    s, w = legendre(t)
    inner = w @ (np.exp(-exponents(s)) * (a1 * c(s) + a4))
    return np.exp(exponents(np.array([t]))[0]) * (u0 + inner)


@pytest.mark.parametrize("equation", ["full", "forced", "modulated"])
@pytest.mark.parametrize("length", [0.1, 1.0])
def test_first_order_solutions_are_the_closed_form(equation, length):
    task = load_task("ode-operator", equation=equation, gp_length=length)
    (batch,) = task.evaluation_batches(6, 0, torch.float64)
    z, u0, uniform, t = drawn(task, 6)
    # Products of c and u need more than degree 40 at ℓ = 0.1.
    tolerance = 1e-8 if length < 1 and equation != "forced" else 1e-12
    for row in range(6):
        a1, a2 = 1 + 0.5 * uniform[row, :2]
        a = (a1 * (equation != "modulated"), a2 * (equation != "forced"), *uniform[row, 2:])
        for example, value in ((0, batch.prompt.y[row, 0, 0]), (24, batch.target[row, 0, 0])):
            c = function(z[row, example], length)
            expected = closed_form(a, c, u0[row, example], t[row])
            assert float(value) == pytest.approx(expected, rel=tolerance, abs=tolerance)


def test_second_order_solutions_are_those_of_an_adaptive_method_and_of_green_s_function():
    task = load_task("ode-operator", equation="second-order")
    (batch,) = task.evaluation_batches(6, 0, torch.float64)
    z, u0, uniform, t = drawn(task, 6)
    for row in range(6):
        a1, (a2, a3, a4) = 1 + 0.5 * uniform[row, 0], uniform[row, 1:]
        c, start = function(z[row, 24], 0.1), u0[row, 24]

        def slope(s, u, c=c, a=(a1, a2, a3, a4)):
            return [u[1], a[0] * c(s)[0] + a[1] * u[1] + a[2] * u[0] + a[3]]

        path = solve_ivp(slope, (0, t[row]), [start, 0.0], method="DOP853", rtol=1e-13, atol=1e-13)
        # G(τ) = (e^{r τ} − e^{q τ})/(r − q) with the roots of x² = a2 x + a3.
        r, q = np.roots([1, -a2, -a3]).astype(complex)
        s, w = legendre(t[row])

        def green(tau, r=r, q=q):
            return (np.exp(r * tau) - np.exp(q * tau)) / (r - q)

        free = (r * np.exp(q * t[row]) - q * np.exp(r * t[row])) / (r - q)
        exact = start * free + w @ (green(t[row] - s) * (a1 * c(s) + a4))
        value = float(batch.target[row, 0, 0])
        assert value == pytest.approx(path.y[0, -1], abs=1e-11)
        assert value == pytest.approx(exact.real, abs=1e-12)


def differentiation(x):
    """The Chebyshev differentiation matrix (Trefethen, Spectral Methods in MATLAB, ch. 6)."""
    n = len(x) - 1
    c = np.where((np.arange(n + 1) == 0) | (np.arange(n + 1) == n), 2.0, 1.0)
    c = c * (-1.0) ** np.arange(n + 1)
    d = np.outer(c, 1 / c) / (x[:, None] - x + np.eye(n + 1))
    return d - np.diag(d.sum(axis=1))


def test_the_row_u_of_0_mends_what_the_source_s_row_loses():
    """The source's row holds a3 u(0) = a3 u0 beside u' = …, which means nothing as a3 → 0."""
    x = chebyshev.points().numpy()
    d, middle = differentiation(x), chebyshev.DEGREE // 2
    unit = np.eye(len(x))[middle]
    random = np.random.default_rng(0)
    c = basis(chebyshev.points(), 0.1).numpy() @ random.standard_normal(terms(0.1))
    a = coefficients("forced", torch.tensor([[0.3, 0.0, 1.0, 0.4]]).double(), 1.0)
    lost = []
    for a3 in (1.0, 1e-6, 1e-9):
        a = a._replace(a3=torch.full_like(a.a3, a3))
        a1, a4, u0 = float(a.a1), float(a.a4), 0.7
        tensors = torch.from_numpy(c).reshape(1, 1, -1), torch.tensor([[u0]], dtype=torch.float64)
        ours = solution(problem_of("forced", a, *tensors))[0, 0].numpy()
        matrix, right = d - a3 * np.eye(len(x)), a1 * c + a4
        source = np.linalg.solve(matrix + a3 * np.diag(unit), right + a3 * u0 * unit)
        lost.append(abs(source[middle] - u0))
        matrix[middle], right[middle] = unit, u0
        mended = np.linalg.solve(matrix, right)
        assert ours[middle] == u0
        assert np.abs(ours - mended).max() < 1e-11
    # What the equation leaves at the middle, divided by a3.
    assert lost[0] < 1e-9
    assert lost[2] > 1e-3
    assert lost[2] / lost[1] == pytest.approx(1000, rel=0.2)


@pytest.mark.parametrize(
    # The defaults; and the shortest length with the largest coefficients that are accepted.
    ("length", "scale", "largest", "median"),
    [(0.1, 1.0, 1e-7, 1e-9), (0.05, 2.0, 1e-4, 1e-7)],
)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_degree_40_resolves_the_solutions(equation, length, scale, largest, median):
    random = torch.Generator().manual_seed(1)
    uniform = 2 * torch.rand(20, 4, generator=random, dtype=torch.float64) - 1
    z = torch.randn(20, 3, terms(length), generator=random, dtype=torch.float64)
    u0 = torch.randn(20, 3, generator=random, dtype=torch.float64)
    a = coefficients(equation, uniform, scale)
    solutions = []
    for degree in (40, 80):
        c = z @ basis(chebyshev.points(degree), length).mT
        problem = problem_of(equation, a, c, u0)
        solutions.append(solution(problem))
        sizes = solutions[-1].abs().amax(dim=2, keepdim=True)
        assert ((iterated_solution(problem) - solutions[-1]) / sizes).abs().max() < 1e-12
        torch.testing.assert_close(solutions[-1][..., degree // 2], u0, rtol=0, atol=0)
    # Every point of degree 40 is one of degree 80.
    difference = ((solutions[1][..., ::2] - solutions[0]) / sizes).abs()
    assert difference.max() < largest
    assert difference.median() < median


def test_integration_and_interpolation_are_exact_for_polynomials():
    x, t = chebyshev.points(), torch.tensor([-1.0, -0.3, 0.0, 0.77, 1.0]).double()
    assert x[20] == 0
    torch.testing.assert_close(x, torch.cos(torch.pi * torch.arange(41).double() / 40))
    for power in (0, 1, 5, 38, 40):
        values = x**power
        if power < 40:
            integral = chebyshev.integration() @ values
            torch.testing.assert_close(integral, x ** (power + 1) / (power + 1))
        torch.testing.assert_close(chebyshev.interpolation(t) @ values, t**power)
    at_points = chebyshev.interpolation(x)
    torch.testing.assert_close(at_points, torch.eye(41, dtype=torch.float64))


@pytest.mark.parametrize("length", [0.05, 0.1, 1.0, 4.0])
def test_the_process_has_its_covariance(length):
    x = torch.linspace(-1, 1, 57, dtype=torch.float64)
    features = basis(x, length)
    assert features.shape[1] == terms(length)
    torch.testing.assert_close(features @ features.mT, kernel(x, x, length), rtol=0, atol=1e-14)


def test_the_conditional_mean_is_the_textbook_s():
    known, wanted = torch.linspace(-1, 1, 6).double(), torch.linspace(-0.9, 0.8, 4).double()
    covariance = kernel(known, known, 0.1) + 0.01 * torch.eye(6).double()
    expected = torch.linalg.solve(covariance, kernel(known, wanted, 0.1)).mT
    weights = conditional_mean(tuple(known.tolist()), tuple(wanted.tolist()), 0.1, 0.01)
    torch.testing.assert_close(weights, expected, rtol=1e-11, atol=1e-11)


def test_the_floor_is_the_posterior_variance_of_a_linear_functional():
    """With few points much of c is unknown; u(t*) is linear in c, so its variance is known."""
    task = load_task("ode-operator", points=8)
    (batch,) = task.evaluation_batches(2000, 0, torch.float64)
    error = task.floor(batch, CONTEXT)["squared_error"]
    nodes, places = chebyshev.points(), task.places
    cross = kernel(places, nodes, 0.1)
    posterior = kernel(nodes, nodes, 0.1) - cross.mT @ torch.linalg.solve(
        kernel(places, places, 0.1), cross
    )
    a = coefficients("forced", batch.truth["coefficients"], 1.0)
    units = torch.eye(41, dtype=torch.float64).expand(2000, 41, 41)
    zero = torch.zeros(2000, 41, dtype=torch.float64)
    response = solution(problem_of("forced", a._replace(a4=0 * a.a4), units, zero))
    weights = (response @ chebyshev.interpolation(batch.truth["t"]).unsqueeze(2))[..., 0]
    variance = ((weights @ posterior) * weights).sum(dim=1)
    ratio = (error / variance)[variance > 1e-12]
    assert len(ratio) > 1900
    # A χ² variable of one degree of freedom has mean 1 and median 0.455.
    assert ratio.mean() == pytest.approx(1.0, abs=0.15)
    assert ratio.median() == pytest.approx(0.455, abs=0.06)


def test_least_squares_in_the_features_solves_linear_equations_alone(tmp_path):
    medians = {
        equation: run(
            model="least-squares-qr", task="ode-operator", task_args={"equation": equation},
            dtype="float64", eval_prompts=128, out=tmp_path,
        ).metrics["squared_error"].median
        for equation in EQUATIONS
    }  # fmt: skip
    assert max(medians["forced"], medians["second-order"]) < 1e-13
    assert min(medians["full"], medians["modulated"]) > 0.02


@pytest.mark.parametrize("equation", EQUATIONS)
def test_the_task_conforms(equation):
    check_task(load_task("ode-operator", equation=equation, examples=5, points=9), 3)


def test_prompts_show_neither_the_answer_nor_the_equation():
    task = load_task("ode-operator")
    (batch,) = task.evaluation_batches(500, 0, torch.float64)
    prompt = batch.prompt
    assert prompt.tokens.shape == (500, 25, 24)
    assert (prompt.tokens[:, -1, -1] == 0).all()
    torch.testing.assert_close(prompt.tokens[:, :-1, :-1], prompt.x)
    torch.testing.assert_close(prompt.tokens[:, :-1, -1:], prompt.y)
    torch.testing.assert_close(prompt.tokens[:, -1:, :-1], prompt.query)
    # The published distribution has a mean square of about 0.87.
    assert batch.target.square().mean() == pytest.approx(0.87, abs=0.12)
    moved = task.with_query(prompt, torch.zeros_like(prompt.query))
    assert (moved.tokens[:, -1] == 0).all()
    assert (moved.query == 0).all()


def test_shifts_change_the_functions_the_coefficients_and_the_equation():
    task = load_task("ode-operator")
    assert set(task.shifts) == {
        "coefficients-double", "coefficients-half", "equation-full", "equation-modulated",
        "equation-second-order", "rougher", "smoother", "starts-double",
    }  # fmt: skip

    def steps(name):
        (batch,) = task.shifted(name).evaluation_batches(200, 0, torch.float64)
        return batch.prompt.x[..., :21].diff(dim=2).square().mean()

    assert steps("rougher") > 1.5 * steps("coefficients-half") > 2.0 * steps("smoother")
    (double,) = task.shifted("starts-double").evaluation_batches(200, 0, torch.float64)
    assert double.prompt.x[..., 21].abs().max() > 1.9
    assert "rougher" not in load_task("ode-operator", gp_length=0.05).shifts


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"equation": "third-order"}, "equation"),
        ({"gp_length": 0.01}, "gp_length"),
        ({"scale": 3}, "scale"),
        ({"points": 1}, "points"),
        ({"equation": "modulated", "scale": 0, "u0_scale": 0}, "no solution but u = 0"),
    ],
)
def test_bad_arguments_are_one_line(args, message):
    with pytest.raises(UsageError, match=message) as error:
        load_task("ode-operator", **args)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("equation", ["forced", "second-order"])
def test_no_shift_leaves_an_equation_without_a_solution_to_learn(equation):
    task = load_task("ode-operator", equation=equation, scale=0, u0_scale=0)
    assert "equation-modulated" not in task.shifts
    for name in task.shifts:
        task.shifted(name)
    assert "equation-modulated" in load_task("ode-operator", equation=equation).shifts
