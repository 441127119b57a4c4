"""The GD transformer is functional gradient descent: against explicit descent and the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import Categorical, UsageError, run
from iclbench.precision import default_dtype
from iclbench_categorical.anchors import Anchors
from iclbench_gd_transformer.architecture import (
    FunctionalGDConfig,
    GDTransformer,
    GDTransformerConfig,
)
from iclbench_gd_transformer.free_form import FreeForm
from iclbench_gd_transformer.gd_form import GDForm
from iclbench_gd_transformer.kernels import attention, expectation
from iclbench_gd_transformer.solver import FunctionalGD, FunctionalGDSolverConfig

KERNELS = ["linear", "rbf", "exponential", "laplacian", "softmax"]
C, D, WIDTH, N, Q = 6, 3, 4, 7, 2


def prompt(seed=0, b=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(b, N, D, generator=generator, dtype=torch.float64)
    y = torch.randint(C, (b, N), generator=generator)
    return Categorical(x, y, torch.randn(b, Q, D, generator=generator, dtype=torch.float64))


def gd_form(**options):
    torch.manual_seed(1)
    given = {"classes": C, "dim": D, "width": WIDTH, "blocks": 3, "heads": 1, "kernel": "rbf",
             "scale": 0.7, "erase": None}  # fmt: skip
    with default_dtype(torch.float64):
        model = GDForm(**{**given, **options})
    with torch.no_grad():
        model.step.copy_(torch.linspace(0.5, 1.5, len(model.step)))
    return model


def kernel_of(kernel, a, b):
    if kernel == "linear":
        return a @ b
    if kernel == "rbf":
        return math.exp(-np.square(a - b).sum())
    if kernel == "laplacian":
        return math.exp(-np.abs(a - b).sum())
    return math.exp(a @ b)


def softmax(v):
    e = np.exp(v - v.max())
    return e / e.sum()


def functional_descent(kernel, x, y, query, W, steps, sigma):
    """Eqs. (2)–(3) written out, point by point; returns f at the context and the queries."""
    points = np.concatenate([x, query]) * sigma
    f = np.zeros((len(points), W.shape[1]))
    for alpha in steps:
        wrong = [W[y[i]] - softmax(W @ f[i]) @ W for i in range(len(x))]
        change = np.zeros_like(f)
        for j, point in enumerate(points):
            weights = [kernel_of(kernel, points[i], point) for i in range(len(x))]
            total = sum(weights) if kernel == "softmax" else len(x)
            for i, weight in enumerate(weights):
                change[j] += alpha * weight / total * wrong[i]
        f = f + change
    return f


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_block_is_a_step_of_functional_descent(kernel):
    asked, model = prompt(), gd_form(kernel=kernel)
    states = model.states(asked)
    W, steps = model.embedding.detach().numpy(), model.step.tolist()
    for i in range(3):
        x, y, query = (t[i].numpy() for t in asked)
        for k, (f, expected) in enumerate(states):
            exact = functional_descent(kernel, x, y, query, W, steps[:k], 0.7)
            np.testing.assert_allclose(f[i].detach().numpy(), exact, atol=1e-12)
            means = np.stack([softmax(W @ v) @ W for v in exact])
            np.testing.assert_allclose(expected[i].detach().numpy(), means, atol=1e-12)
    logits = states[-1][0][:, N:] @ model.embedding.T
    torch.testing.assert_close(model(asked), logits)


def test_with_the_linear_kernel_it_descends_on_the_parameters():
    """The cross-entropy of eq. 2, differentiated by torch, on A explicitly."""
    asked, model = prompt(), gd_form(kernel="linear", scale=1.0)
    W = model.embedding.detach()
    for i in range(3):
        x, y, query = (t[i] for t in asked)
        A = torch.zeros(WIDTH, D, dtype=torch.float64, requires_grad=True)
        for alpha in model.step.tolist():
            loss = torch.nn.functional.cross_entropy(x @ A.T @ W.T, y)
            (slope,) = torch.autograd.grad(loss, A)
            A = (A - alpha * slope).detach().requires_grad_()
        torch.testing.assert_close(model(asked)[i], query @ A.T @ W.T, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_solver_is_the_transformer_with_the_same_embeddings(kernel):
    asked, model = prompt(), gd_form(kernel=kernel)
    with torch.no_grad():
        model.step.fill_(0.8)
    rows = tuple(tuple(row) for row in model.embedding.tolist())
    config = FunctionalGDSolverConfig(
        steps=3, step_size=0.8, kernel=kernel, scale=0.7, embedding=rows
    )
    signature = Anchors(Anchors.Config(classes=C, dim=D, anchors=3)).signature
    assert FunctionalGD().supports(signature, config) is None
    found = FunctionalGD().build(signature, config)(asked)
    torch.testing.assert_close(found, model(asked))


def test_several_kernels_are_added_up():
    """Appendix H: κ(Λ_m x, Λ_m x') and P_m."""
    asked, model = prompt(), gd_form(heads=2, blocks=1)
    W = model.embedding.detach().numpy()
    for i in range(3):
        x, y, query = (t[i].numpy() for t in asked)
        total = np.zeros((N + Q, WIDTH))
        for P, diagonal in zip(model.project, model.diagonal, strict=True):
            scaled = [v * diagonal.detach().numpy() for v in (x, query)]
            f = functional_descent("rbf", scaled[0], y, scaled[1], W, model.step.tolist(), 0.7)
            total += f @ P.detach().numpy().T
        np.testing.assert_allclose(model.states(asked)[-1][0][i].detach(), total, atol=1e-12)


def erased(kernel, sharpness, asked):
    """The largest difference of E after three blocks from E overwritten."""
    exact, found = (
        gd_form(kernel=kernel, erase=erase).states(asked)[-1][1].detach()
        for erase in (None, sharpness)
    )
    return float((found - exact).abs().max())


def test_head_2_erases_with_a_kernel_that_singles_out_the_position():
    asked = prompt()
    errors = [erased("rbf", sharpness, asked) for sharpness in (1.0, 5.0, 50.0)]
    assert errors[0] > 0.1 > errors[1] > errors[2]
    assert errors[2] < 1e-12


def test_with_softmax_head_2_fails_unless_covariates_are_normalized():
    """λ → ∞ selects the largest inner product, which is the position itself on a sphere alone."""
    asked = prompt()
    assert erased("softmax", 50.0, asked) > 0.1
    unit = asked._replace(
        x=asked.x / asked.x.norm(dim=2, keepdim=True),
        query=asked.query / asked.query.norm(dim=2, keepdim=True),
    )
    assert erased("softmax", 100.0, unit) < 1e-6


def test_several_queries_are_asked_in_one_pass_and_do_not_see_each_other():
    asked = prompt()
    for model in (gd_form(), gd_form(erase=3.0), free_form(1), free_form(3)):
        together = model(asked)
        for q in range(Q):
            alone = model(asked._replace(query=asked.query[:, q : q + 1]))
            torch.testing.assert_close(together[:, q : q + 1], alone)


def free_form(blocks, kernel="softmax"):
    torch.manual_seed(2)
    return FreeForm(classes=C, dim=D, width=WIDTH, blocks=blocks, kernel=kernel).double()


@pytest.mark.parametrize("kernel", ["rbf", "softmax", "linear"])
@pytest.mark.parametrize("blocks", [1, 3])
def test_the_free_form_contains_the_gd_form(blocks, kernel):
    """With the matrices of Appendices C and D, and head 2 sharp, it is the same."""
    asked = prompt()
    unit = asked._replace(
        x=asked.x / asked.x.norm(dim=2, keepdim=True),
        query=asked.query / asked.query.norm(dim=2, keepdim=True),
    )
    gd, free = gd_form(blocks=blocks, kernel=kernel), free_form(blocks, kernel)
    d, w = D, WIDTH
    with torch.no_grad():
        free.embedding.copy_(gd.embedding)
        for parameter in [p for n, p in free.named_parameters() if n != "embedding"]:
            parameter.zero_()
        for k, head in enumerate(free.first):
            head.query[:d, :d] = head.key[:d, :d] = 0.7 * torch.eye(d)
            head.value[-w:, d : d + w] = torch.eye(w)
            if blocks > 1:
                head.value[-w:, d + w : d + 2 * w] = -torch.eye(w)
            head.project[-w:, -w:] = gd.step[k] * torch.eye(w)
        if blocks > 1 and kernel != "linear":
            for head in free.second:
                head.query[:d, :d] = head.key[:d, :d] = 60.0 * torch.eye(d)
                head.value[d + w : d + 2 * w, d + w : d + 2 * w] = torch.eye(w)
                factor = -1.0 if kernel == "softmax" else -float(N)
                head.project[d + w : d + 2 * w, d + w : d + 2 * w] = factor * torch.eye(w)
    if blocks > 1 and kernel == "linear":
        return  # linear attention can't single out a position
    torch.testing.assert_close(free(unit), gd(unit), atol=1e-6, rtol=0)


@given(seed=st.integers(0, 99))
def test_the_expectation_is_the_mean_under_the_softmax(seed):
    generator = torch.Generator().manual_seed(seed)
    f = torch.randn(2, 3, WIDTH, generator=generator, dtype=torch.float64)
    W = torch.randn(C, WIDTH, generator=generator, dtype=torch.float64)
    p = (f @ W.T).softmax(dim=2)
    expected = (p.unsqueeze(3) * W).sum(dim=2)
    torch.testing.assert_close(expectation(f, W), expected)


def test_masked_keys_are_not_seen():
    x = torch.randn(1, 4, 2, dtype=torch.float64)
    mask = torch.tensor([[True, True, False, False]] * 4)
    for kernel in KERNELS:
        found = attention(kernel, x, x, mask)
        torch.testing.assert_close(found[..., :2], attention(kernel, x, x[:, :2]))
        assert (found[..., 2:] == 0).all()


def test_the_construction_takes_the_task_s_embeddings():
    task = Anchors(Anchors.Config())
    construction = GDTransformer.constructions["functional-gd"]
    config, state = construction.build(task.signature, FunctionalGDConfig(blocks=4, step=2.0), task)
    model = GDTransformer().build(task.signature, GDTransformerConfig(**config)).double()
    model.load_state_dict(state)
    assert torch.equal(model.embedding, task.parameters["embedding"])
    assert model.step.tolist() == [2.0] * 4


@pytest.mark.parametrize("form", ["gd", "free"])
def test_both_forms_learn(tmp_path, form):
    record = run(
        model="gd-transformer",
        model_args={"form": form, "kernel": "softmax"},
        task="categorical-quadrants",
        task_args={"examples": 20},
        recipe="quick",
        recipe_args={"steps": 200, "learning_rate": 1e-2},
        eval_prompts=512,
        seeds=2,
        out=tmp_path,
    )
    assert record.metrics["nll"].mean < math.log(20)
    assert record.training.replicas == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"form": "free", "erase": 3.0}, "form=free has no erase"),
        ({"form": "free", "scale": 3.0}, "form=free has no scale"),
        ({"form": "free", "heads": 2}, "leave heads out"),
        ({"kernel": "cosine"}, "linear"),
    ],
)
def test_what_it_can_t_do_is_said(args, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        run(model="gd-transformer", task="categorical", model_args=args, out=tmp_path)
    with pytest.raises(UsageError, match="answers class, not query"):
        run(model="gd-transformer", task="least-squares", out=tmp_path)
    with pytest.raises(UsageError, match="embedding must have 25 rows"):
        run(model="functional-gd", task="categorical", model_args={"embedding": [[1.0]]},
            out=tmp_path)  # fmt: skip
