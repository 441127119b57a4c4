"""The GD transformer is functional gradient descent: against explicit descent and the formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import Categorical, EvaluationContext, UsageError, run, training_batch
from iclbench.precision import default_dtype
from iclbench_categorical.anchors import Anchors
from iclbench_gd_transformer.architecture import (
    FunctionalGDConfig,
    GDTransformer,
    GDTransformerConfig,
)
from iclbench_gd_transformer.exactness import DescentError
from iclbench_gd_transformer.free_form import FreeForm
from iclbench_gd_transformer.gd_form import GDForm
from iclbench_gd_transformer.kernels import attention, expectation, features
from iclbench_gd_transformer.matrices import AttentionMatrices
from iclbench_gd_transformer.solver import FunctionalGD, FunctionalGDSolverConfig

KERNELS = ["linear", "polynomial", "rbf", "exponential", "laplacian", "softmax"]
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


def functional_descent(kernel, x, y, query, W, steps, sigmas, projections=None, bias=0.0):
    """Eqs. (2)–(3), and Appendix H for several kernels, written out point by point.

    `sigmas` are each kernel's factors on x. Returns f at the context and the queries.
    """
    every = np.concatenate([x, query])
    f = np.zeros((len(every), W.shape[1]))
    for alpha in steps:
        wrong = [W[y[i]] - softmax(W @ f[i]) @ W for i in range(len(x))]
        change = np.zeros_like(f)
        for m, sigma in enumerate(sigmas):
            points = every * sigma
            P = np.eye(W.shape[1]) if projections is None else projections[m]
            for j, point in enumerate(points):
                weights = [kernel_of(kernel, points[i], point) for i in range(len(x))]
                total = sum(weights) if kernel == "softmax" else len(x)
                for i, weight in enumerate(weights):
                    change[j] += alpha * (weight / total + bias / len(x)) * P @ wrong[i]
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
            exact = functional_descent(kernel, x, y, query, W, steps[:k], [0.7])
            np.testing.assert_allclose(f[i].detach().numpy(), exact, atol=1e-12)
            means = np.stack([softmax(W @ v) @ W for v in exact])
            np.testing.assert_allclose(expected[i].detach().numpy(), means, atol=1e-12)
    logits = states[-1][0][:, N:] @ model.embedding.T
    torch.testing.assert_close(model(asked), logits)


def features_of(kernel, x):
    """ψ of the linear kernel, or of (1 + xᵀx')², by products of all pairs (with repetitions)."""
    if kernel == "linear":
        return x
    inputs = torch.cat([torch.ones_like(x[:, :1]), x], dim=1)
    return torch.einsum("ni,nj->nij", inputs, inputs).flatten(1)


@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("bias", [False, True])
def test_with_finite_features_it_descends_on_the_parameters(kernel, bias):
    """The cross-entropy of eq. 2, differentiated by torch, on A and b explicitly."""
    asked, model = prompt(), gd_form(kernel=kernel, scale=0.7, bias=bias)
    W = model.embedding.detach()
    for i in range(3):
        x, y, query = (t[i] for t in asked)
        psi, psi_query = (features_of(kernel, 0.7 * v) for v in (x, query))
        A = torch.zeros(WIDTH, psi.shape[1], dtype=torch.float64, requires_grad=True)
        b = torch.zeros(WIDTH, dtype=torch.float64, requires_grad=True)
        for alpha in model.step.tolist():
            loss = torch.nn.functional.cross_entropy((psi @ A.T + b) @ W.T, y)
            slopes = torch.autograd.grad(loss, (A, b))
            A = (A - alpha * slopes[0]).detach().requires_grad_()
            b = (b - bias * alpha * slopes[1]).detach().requires_grad_()
        answer = (psi_query @ A.T + b) @ W.T
        torch.testing.assert_close(model(asked)[i], answer, atol=1e-12, rtol=0)


@given(seed=st.integers(0, 99), degree=st.integers(1, 4))
def test_finite_features_have_the_kernel_as_their_product(seed, degree):
    x = torch.randn(5, D, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    psi = features("polynomial", x, degree)
    assert psi.shape[1] == math.comb(D + degree, degree)
    torch.testing.assert_close(psi @ psi.mT, (1 + x @ x.mT) ** degree)
    found = 5 * attention("polynomial", x[None], x[None], degree=degree)[0]
    torch.testing.assert_close(found, (1 + x @ x.mT) ** degree)
    assert features("rbf", x) is None
    assert features("polynomial", torch.zeros(1, 512)) is None  # 131,841 of them


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


@pytest.mark.parametrize("kernel", ["rbf", "softmax"])
@pytest.mark.parametrize("projection", ["full", "diagonal"])
@pytest.mark.parametrize("bias", [False, True])
def test_several_kernels_are_added_up(kernel, projection, bias):
    """Appendix H: κ(Λ_m x, Λ_m x') and P_m, which all see the same expectation, over blocks."""
    asked = prompt()
    model = gd_form(kernel=kernel, heads=2, projection=projection, bias=bias)
    with torch.no_grad():
        model.project.add_(0.3 * torch.randn_like(model.project))
    W = model.embedding.detach().numpy()
    sigmas = [0.7 * row.detach().numpy() for row in model.diagonal]
    matrices = [P.detach().numpy() for P in model.project]
    matrices = matrices if projection == "full" else [np.diag(P) for P in matrices]
    for i in range(3):
        x, y, query = (t[i].numpy() for t in asked)
        f = functional_descent(
            kernel, x, y, query, W, model.step.tolist(), sigmas, matrices, float(bias)
        )
        np.testing.assert_allclose(model.states(asked)[-1][0][i].detach(), f, atol=1e-12)


def on_the_sphere(asked):
    return asked._replace(
        x=asked.x / asked.x.norm(dim=2, keepdim=True),
        query=asked.query / asked.query.norm(dim=2, keepdim=True),
    )


def test_normalized_covariates_are_those_of_a_normalized_prompt():
    asked = prompt()
    for form in (gd_form, free_form):
        normal, plain = form(normalize=True), form()
        torch.testing.assert_close(normal(asked), plain(on_the_sphere(asked)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("heads", [1, 2])
def test_the_error_of_every_block_is_rounding(kernel, heads):
    task = Anchors(Anchors.Config(classes=C, dim=D, anchors=3, embedding=WIDTH))
    (batch,) = task.evaluation_batches(20, 0, torch.float64)
    model = gd_form(kernel=kernel, heads=heads, bias=True)
    metric, context = DescentError(), EvaluationContext(torch.device("cpu"), torch.Generator())
    with torch.no_grad():
        found = metric.compute(model, task, batch, context)
        wrong = metric.compute(gd_form(kernel="rbf", erase=1.0), task, batch, context)
    assert found["f_squared_error_by_block"].shape == (20, 3)
    scale = max(float(f.detach().square().sum(dim=2).max()) for f, _ in model.states(batch.prompt))
    for name, values in found.items():
        assert float(values.max()) < 1e-26 * scale, name
    # The first step is made before E is erased for the first time.
    assert float(wrong["f_squared_error_by_block"][:, 0].max()) < 1e-28
    assert float(wrong["expectation_squared_error"].mean()) > 1e-4
    assert metric.supports_model(free_form(1)) is not None
    assert metric.supports_model(model) is None


def test_the_metrics_say_what_they_need(tmp_path):
    gd = {"model": "gd-transformer", "task": "categorical", "recipe": "smoke", "out": tmp_path}
    with pytest.raises(UsageError, match="form=free has attention matrices"):
        run(**gd, metrics=("attention-matrices",))
    with pytest.raises(UsageError, match="form=gd has steps"):
        run(**gd, model_args={"form": "free"}, metrics=("descent-error",))
    with pytest.raises(UsageError, match="asks for the class"):
        run(model="transformer", task="least-squares", metrics=("descent-error",), out=tmp_path)


def matrices_of(model):
    context = EvaluationContext(torch.device("cpu"), torch.Generator())
    return AttentionMatrices().analysis(model, None, [], context)


def test_gradient_descent_s_matrices_pass_the_identity_tests():
    """Those of Appendix C, turned by orthogonal matrices inside each product."""
    model = free_form(1)
    (head,) = model.first
    size = D + 2 * WIDTH
    turn = [torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q for _ in range(2)]
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.query.copy_(2.0 * turn[0])
        head.query[:, D:] = 0
        head.key.copy_(head.query)
        head.value[:, D : D + WIDTH] = turn[1][:, :WIDTH]
        head.project[-WIDTH:] = 3.0 * turn[1][:, :WIDTH].T
    found = matrices_of(model)
    (numbers,) = found["blocks"]
    assert numbers["query_key"]["c"] == pytest.approx(4.0)
    assert numbers["value_project"]["c"] == pytest.approx(3.0)
    for product in ("query_key", "value_project"):
        assert numbers[product]["deviation"] < 1e-12
        assert numbers[product]["asymmetry"] < 1e-12
    assert numbers["query_key"]["difference"] < 1e-12
    shares = [v for name, v in numbers.items() if name.startswith("share")]
    assert shares == pytest.approx([1.0] * 4)
    maps = {one["name"]: np.array(one["values"]) for one in found["maps"]}
    np.testing.assert_allclose(maps["AᵀB"], 4.0 * np.eye(D), atol=1e-6)
    assert maps["W_Q"].shape == maps["P"].shape == (size, size)


def test_random_matrices_fail_the_identity_tests():
    found = matrices_of(free_form(2))
    assert len(found["blocks"]) == 2
    assert "ED of block 2" in [one["name"] for one in found["maps"]]
    for numbers in found["blocks"]:
        assert numbers["value_project"]["deviation"] > 0.8
        assert 0.1 < numbers["share_query"] < 0.5


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
    assert erased("softmax", 100.0, on_the_sphere(asked)) < 1e-6


def test_several_queries_are_asked_in_one_pass_and_do_not_see_each_other():
    asked = prompt()
    for model in (gd_form(), gd_form(erase=3.0), free_form(1), free_form(3)):
        together = model(asked)
        for q in range(Q):
            alone = model(asked._replace(query=asked.query[:, q : q + 1]))
            torch.testing.assert_close(together[:, q : q + 1], alone)


def free_form(blocks=1, kernel="softmax", **options):
    torch.manual_seed(2)
    return FreeForm(classes=C, dim=D, width=WIDTH, blocks=blocks, kernel=kernel, **options).double()


@pytest.mark.parametrize(
    ("blocks", "kernel"), [(1, "rbf"), (1, "softmax"), (1, "linear"), (3, "rbf"), (3, "softmax")]
)  # linear attention can't single out a position, which several blocks need
def test_the_free_form_contains_the_gd_form(blocks, kernel):
    """With the matrices of Appendices C and D, and head 2 sharp, it is the same."""
    asked = prompt()
    unit = on_the_sphere(asked)
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
        if blocks > 1:
            for head in free.second:
                head.query[:d, :d] = head.key[:d, :d] = 60.0 * torch.eye(d)
                head.value[d + w : d + 2 * w, d + w : d + 2 * w] = torch.eye(w)
                factor = -1.0 if kernel == "softmax" else -float(N)
                head.project[d + w : d + 2 * w, d + w : d + 2 * w] = factor * torch.eye(w)
    torch.testing.assert_close(free(unit), gd(unit), atol=1e-6, rtol=0)


@given(seed=st.integers(0, 99))
def test_the_expectation_is_the_mean_under_the_softmax(seed):
    generator = torch.Generator().manual_seed(seed)
    f = torch.randn(2, 3, WIDTH, generator=generator, dtype=torch.float64)
    W = torch.randn(C, WIDTH, generator=generator, dtype=torch.float64)
    p = (f @ W.T).softmax(dim=2)
    expected = (p.unsqueeze(3) * W).sum(dim=2)
    torch.testing.assert_close(expectation(f, W), expected)


def test_the_free_form_s_scale_is_a_factor_on_queries_and_keys():
    asked, model, scaled = prompt(), free_form(1), free_form(1, scale=0.5)
    with torch.no_grad():
        for matrix in (model.first[0].query, model.first[0].key):
            matrix.mul_(0.5)
    torch.testing.assert_close(scaled(asked), model(asked))


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


def test_options_that_were_added_later_leave_ids_alone():
    before = {"form", "blocks", "kernel", "heads", "embedding", "scale", "erase"}
    assert set(GDTransformerConfig().model_dump(mode="json")) == before
    assert set(GDTransformerConfig(bias=True).model_dump(mode="json")) == before | {"bias"}


@pytest.mark.parametrize("form", ["gd", "free"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("blocks", [1, 3])
def test_untrained_models_are_finite_in_float32(form, kernel, blocks):
    """No kernel overflows, nor does its gradient, on the task's covariates, N(0, I) in d = 10."""
    task = Anchors(Anchors.Config())
    batch = training_batch(task, 256, torch.Generator().manual_seed(0), torch.float32)
    torch.manual_seed(0)
    config = GDTransformerConfig(form=form, kernel=kernel, blocks=blocks)
    model = GDTransformer().build(task.signature, config)
    loss = task.loss(model(batch.prompt), batch.target).mean()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


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
        ({"form": "free", "heads": 2}, "leave heads out"),
        ({"form": "free", "bias": True}, "form=free has no bias"),
        ({"form": "free", "projection": "diagonal"}, "form=free has no projection"),
        ({"degree": 0}, "greater than or equal to 1"),
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
