"""Every block of the GD transformer against functional gradient descent written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gd_transformer_models import KERNELS, WIDTH, C, D, N, free_form, gd_form, make_prompt
from hypothesis import given
from hypothesis import strategies as st

from iclbench import EvaluationContext
from iclbench_categorical.anchors import Anchors
from iclbench_gd_transformer.descent import Head, descend, stable_step
from iclbench_gd_transformer.exactness import DescentError
from iclbench_gd_transformer.kernels import attention, features, median_scale
from iclbench_gd_transformer.solver import FunctionalGD, FunctionalGDSolverConfig


def kernel_of(kernel, a, b):
    if kernel == "linear":
        return a @ b
    if kernel == "polynomial":
        return (1 + a @ b) ** 2
    if kernel == "rbf":
        return math.exp(-np.square(a - b).sum())
    if kernel == "laplacian":
        return math.exp(-np.abs(a - b).sum())
    return math.exp(a @ b)


def softmax(v):
    e = np.exp(v - v.max())
    return e / e.sum()


def functional_descent(kernel, prompt, W, steps, sigmas, projections=None, bias=0.0):
    """Eqs. (2)–(3), and Appendix H for several kernels, written out point by point.

    `prompt` holds x, y and query of one prompt; `sigmas` are the kernels' factors on x. Returns f
    at the context and the queries.
    """
    x, y, query = prompt
    inputs = np.concatenate([x, query])
    f = np.zeros((len(inputs), W.shape[1]))
    for alpha in steps:
        errors = [W[y[i]] - softmax(W @ f[i]) @ W for i in range(len(x))]
        change = np.zeros_like(f)
        for m, sigma in enumerate(sigmas):
            points = inputs * sigma
            P = np.eye(W.shape[1]) if projections is None else projections[m]
            for j, point in enumerate(points):
                weights = [kernel_of(kernel, points[i], point) for i in range(len(x))]
                total = sum(weights) if kernel == "softmax" else len(x)
                for i, weight in enumerate(weights):
                    change[j] += alpha * (weight / total + bias / len(x)) * P @ errors[i]
        f = f + change
    return f


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_block_is_a_step_of_functional_descent(kernel):
    prompt, model = make_prompt(), gd_form(kernel=kernel)
    states = model.states(prompt)
    W, steps = model.embedding.detach().numpy(), model.step.tolist()
    for i in range(3):
        row = [t[i].numpy() for t in prompt]
        for k, (f, expected) in enumerate(states):
            exact = functional_descent(kernel, row, W, steps[:k], [0.7])
            np.testing.assert_allclose(f[i].detach().numpy(), exact, atol=1e-12)
            means = np.stack([softmax(W @ v) @ W for v in exact])
            np.testing.assert_allclose(expected[i].detach().numpy(), means, atol=1e-12)
    logits = states[-1][0][:, N:] @ model.embedding.T
    torch.testing.assert_close(model(prompt), logits)


def features_of(kernel, x):
    """ψ of the linear kernel, or of (1 + xᵀx')² as the products of all pairs, repeated ones too."""
    if kernel == "linear":
        return x
    inputs = torch.cat([torch.ones_like(x[:, :1]), x], dim=1)
    return torch.einsum("ni,nj->nij", inputs, inputs).flatten(1)


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("bias", [False, True])
def test_finite_features_give_descent_on_the_parameters(kernel, bias):
    """Torch differentiates the cross-entropy of eq. 2 in A and b."""
    prompt, model = make_prompt(), gd_form(kernel=kernel, scale=0.7, bias=bias)
    W = model.embedding.detach()
    for i in range(3):
        x, y, query = (t[i] for t in prompt)
        psi, psi_query = (features_of(kernel, 0.7 * v) for v in (x, query))
        A = torch.zeros(WIDTH, psi.shape[1], dtype=torch.float64, requires_grad=True)
        b = torch.zeros(WIDTH, dtype=torch.float64, requires_grad=True)
        for alpha in model.step.tolist():
            loss = torch.nn.functional.cross_entropy((psi @ A.T + b) @ W.T, y)
            slopes = torch.autograd.grad(loss, (A, b))
            A = (A - alpha * slopes[0]).detach().requires_grad_()
            b = (b - bias * alpha * slopes[1]).detach().requires_grad_()
        answer = (psi_query @ A.T + b) @ W.T
        torch.testing.assert_close(model(prompt)[i], answer, atol=1e-12, rtol=0)


@given(seed=st.integers(0, 99), degree=st.integers(1, 4))
def test_products_of_features_are_the_kernel(seed, degree):
    x = torch.randn(5, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    psi = features("polynomial", x, degree)
    assert psi.shape[1] == math.comb(D + degree, degree)
    torch.testing.assert_close(psi @ psi.mT, (1 + x @ x.mT) ** degree)
    kernel = 5 * attention("polynomial", x[None], x[None], degree=degree)[0]
    torch.testing.assert_close(kernel, (1 + x @ x.mT) ** degree)
    assert features("rbf", x) is None
    assert features("polynomial", torch.zeros(1, 512)) is None  # there would be 131,841


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_solver_equals_the_transformer_with_the_same_embeddings(kernel):
    prompt, model = make_prompt(), gd_form(kernel=kernel)
    with torch.no_grad():
        model.step.fill_(0.8)
    rows = tuple(tuple(row) for row in model.embedding.tolist())
    config = FunctionalGDSolverConfig(
        steps=3, step_size=0.8, kernel=kernel, scale=0.7, embedding=rows
    )
    signature = Anchors(Anchors.Config(classes=C, dim=D, anchors=3)).signature
    assert FunctionalGD().supports(signature, config) is None
    logits = FunctionalGD().build(signature, config)(prompt)
    torch.testing.assert_close(logits, model(prompt))


@pytest.mark.parametrize("kernel", ["rbf", "softmax"])
@pytest.mark.parametrize("projection", ["full", "diagonal"])
@pytest.mark.parametrize("bias", [False, True])
def test_several_kernels_are_summed(kernel, projection, bias):
    """Appendix H: κ(Λ_m x, Λ_m x') and P_m for every head; all heads see one expectation."""
    prompt = make_prompt()
    model = gd_form(kernel=kernel, heads=2, projection=projection, bias=bias)
    with torch.no_grad():
        model.project.add_(0.3 * torch.randn_like(model.project))
    W = model.embedding.detach().numpy()
    sigmas = [0.7 * row.detach().numpy() for row in model.diagonal]
    matrices = [P.detach().numpy() for P in model.project]
    matrices = matrices if projection == "full" else [np.diag(P) for P in matrices]
    for i in range(3):
        row = [t[i].numpy() for t in prompt]
        f = functional_descent(kernel, row, W, model.step.tolist(), sigmas, matrices, float(bias))
        np.testing.assert_allclose(model.states(prompt)[-1][0][i].detach(), f, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("heads", [1, 2])
def test_the_error_of_every_block_is_only_rounding(kernel, heads):
    task = Anchors(Anchors.Config(classes=C, dim=D, anchors=3, embedding=WIDTH))
    (batch,) = task.evaluation_batches(20, 0, torch.float64)
    model = gd_form(kernel=kernel, heads=heads, bias=True)
    metric, context = DescentError(), EvaluationContext(torch.device("cpu"), torch.Generator())
    with torch.no_grad():
        errors = metric.compute(model, task, batch, context)
        erasing = metric.compute(gd_form(kernel="rbf", erase=1.0), task, batch, context)
    assert errors["f_squared_error_by_block"].shape == (20, 3)
    scale = max(float(f.detach().square().sum(dim=2).max()) for f, _ in model.states(batch.prompt))
    for name, values in errors.items():
        assert float(values.max()) < 1e-26 * scale, name
    # The first step comes before E is erased for the first time.
    assert float(erasing["f_squared_error_by_block"][:, 0].max()) < 1e-28
    assert float(erasing["expectation_squared_error"].mean()) > 1e-4
    assert metric.supports_model(free_form(1)) is not None
    assert metric.supports_model(model) is None


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_default_scale_makes_the_median_distance_1(kernel):
    prompt = make_prompt()
    scaled = median_scale(kernel, prompt.x) * prompt.x
    for x in scaled.numpy():
        norm = 1 if kernel == "laplacian" else 2
        pairs = [np.linalg.norm(x[i] - x[j], norm) for i in range(N) for j in range(i)]
        assert np.sort(pairs)[(len(pairs) - 1) // 2] == pytest.approx(1.0)
    for degenerate in (prompt.x[:, :1], torch.ones_like(prompt.x)):
        assert (median_scale(kernel, degenerate) == 1).all()


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k != "softmax"])
@pytest.mark.parametrize("bias", [False, True])
def test_no_step_of_the_default_size_increases_the_cross_entropy(kernel, bias):
    """That is what 1/L guarantees; 50/L breaks it."""
    prompt, W = make_prompt(), gd_form().embedding.detach()
    x = median_scale(kernel, prompt.x) * prompt.x
    step = stable_step(x, W, kernel, bias=bias)

    def losses(factor):
        steps = (factor * step).expand(30, -1, -1, -1)
        states = descend([Head(x)], W[prompt.y], W, steps, kernel, bias=bias)
        logs = torch.stack([(f @ W.mT).log_softmax(dim=2) for f, _ in states])
        targets = prompt.y.expand(len(logs), -1, -1).unsqueeze(3)
        return -logs.gather(3, targets)[..., 0].mean(dim=2)

    assert (losses(1.0).diff(dim=0) <= 1e-12).all()
    assert (losses(50.0).diff(dim=0) > 1e-3).any()


def test_the_solver_uses_the_default_scale_and_step():
    prompt = make_prompt()
    signature = Anchors(Anchors.Config(classes=C, dim=D, anchors=3)).signature
    logits = FunctionalGD().build(signature, FunctionalGDSolverConfig(steps=3))(prompt)
    one_hot = torch.eye(C, dtype=torch.float64)
    scale = median_scale("rbf", prompt.x)
    step = stable_step(scale * prompt.x, one_hot, "rbf")
    for i in range(3):
        config = FunctionalGDSolverConfig(steps=3, step_size=float(step[i]), scale=float(scale[i]))
        one = type(prompt)(*(field[i : i + 1] for field in prompt))
        expected = FunctionalGD().build(signature, config)(one)
        torch.testing.assert_close(logits[i : i + 1], expected)
