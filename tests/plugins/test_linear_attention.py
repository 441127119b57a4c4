"""LSA and ELSA: operators, Properties 1–4, and both constructions of gradient descent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from several_replicas import assert_taken

from iclbench import UsageError, load_task, run, verify
from iclbench.precision import default_dtype
from iclbench.runs.checks import ConformanceError, check_architecture
from iclbench.training.gradients.capacity import Operators
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_linear_attention import residual
from iclbench_linear_attention.architecture import (
    ExtendedConfig,
    ExtendedLinearSelfAttention,
    LinearSelfAttention,
    MatrixConfig,
    MatrixModel,
)
from iclbench_linear_attention.forms import (
    designed,
    designed_layout,
    enumerated,
    enumerated_layout,
)
from iclbench_linear_attention.modules import ELSA, LSA
from iclbench_linear_attention.operators import (
    attend,
    elsa,
    lsa,
    mask_and_move,
    mask_and_move_matrices,
)
from iclbench_linear_attention.properties import (
    block_product,
    constant,
    identity,
    transposed_product,
)
from iclbench_linear_attention.tokens import ELSATokens, LSATokens, TokensConfig
from iclbench_solvers.iterative import GradientDescent, GradientDescentConfig
from iclbench_solvers.solver import examples_of

sizes = st.integers(1, 7)
seeds = st.integers(0, 99)
dtypes = st.sampled_from([torch.float32, torch.float64])
EPS = {torch.float32: 1e-5, torch.float64: 1e-13}


def randn(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def close(found, expected, dtype):
    scale = max(1.0, float(expected.abs().max()))
    assert found.dtype == dtype
    assert (found - expected).abs().max() <= EPS[dtype] * scale


# Operators


@given(m=sizes, n=sizes, lead=st.sampled_from([(), (3,), (2, 3)]), seed=seeds)
def test_lsa_and_elsa_are_equations_8_and_16(m, n, lead, seed):
    H = randn(seed, *lead, m, n)
    W, B = randn(seed + 1, 3, n, n), randn(seed + 2, 3, m, n)
    Q, K, V = H @ W[2], H @ W[0], H @ W[1]
    torch.testing.assert_close(lsa(H, *W), torch.einsum("...ia,...ja,...jb->...ib", Q, K, V))
    Q, K, V = Q + B[2], K + B[0], V + B[1]
    found = elsa(H, *zip(W, B, strict=True))
    torch.testing.assert_close(found, torch.einsum("...ia,...ja,...jb->...ib", Q, K, V))


@pytest.mark.parametrize(("m", "n"), [(3, 8), (8, 3), (5, 5)])
def test_both_orders_of_association_agree_and_the_cheaper_is_taken(m, n, monkeypatch):
    a, b, c = (randn(i, 2, m, n) for i in range(3))
    outer, inner = (a @ b.mT) @ c, a @ (b.mT @ c)
    torch.testing.assert_close(outer, inner)
    products = []
    real = torch.Tensor.__matmul__

    def spy(x, y):
        products.append(tuple(real(x, y).shape[-2:]))
        return real(x, y)

    monkeypatch.setattr(torch.Tensor, "__matmul__", spy)
    found = attend(a, b, c)
    monkeypatch.undo()
    assert products[0] == (min(m, n), min(m, n))
    torch.testing.assert_close(found, outer)


def test_causal_attention_sees_no_later_row():
    a, b, c = (randn(i, 2, 5, 3) for i in range(3))
    before = attend(a, b, c, causal=True)
    later = [torch.cat([t[:, :3], 9 + t[:, 3:]], dim=1) for t in (a, b, c)]
    assert torch.equal(attend(*later, causal=True)[:, :3], before[:, :3])
    torch.testing.assert_close(before[:, -1], attend(a, b, c)[:, -1])


# Property 1


@given(data=st.data(), m=sizes, n=sizes, seed=seeds)
def test_property_1_mask_and_move(data, m, n, seed):
    A = randn(seed, m, n)
    i = data.draw(st.integers(0, m - 1))
    j = data.draw(st.integers(i + 1, m))
    k = data.draw(st.integers(0, n - 1))
    end = data.draw(st.integers(k + 1, n))
    down, right = data.draw(st.integers(-i, m - j)), data.draw(st.integers(-k, n - end))
    expected = torch.zeros_like(A)
    expected[i + down : j + down, k + right : end + right] = A[i:j, k:end]
    assert torch.equal(mask_and_move(A, (i, j), (k, end), down, right), expected)
    W, V = mask_and_move_matrices((m, n), (i, j), (k, end), down, right)
    assert torch.equal(W.double() @ A @ V.double(), expected)


def test_equation_7_moves_to_the_upper_right_corner():
    A = randn(0, 4, 6)
    P = mask_and_move(A, (1, 3), (2, 4), -1, 2)
    assert torch.equal(P[:2, 4:], A[1:3, 2:4])
    assert P.count_nonzero() == 4


def test_a_block_can_t_leave_the_matrix():
    with pytest.raises(ValueError, match="not within 0:4"):
        mask_and_move(randn(0, 4, 4), (0, 2), (2, 4), 0, 1)
    with pytest.raises(ValueError, match="not within 0:4"):
        mask_and_move(randn(0, 4, 4), (0, 5), (2, 4), 0, 0)


# Properties 2, 3 and 4


@given(m=sizes, n=sizes, seed=seeds, dtype=dtypes)
def test_property_2_any_constant(m, n, seed, dtype):
    C = randn(seed, m, n, dtype=dtype)
    H = randn(seed + 1, 3, m, n, dtype=dtype)
    assert torch.equal(elsa(H, *constant(C)), C.expand(3, m, n))


@given(m=sizes, n=sizes, seed=seeds, dtype=dtypes)
def test_property_3_the_input_itself(m, n, seed, dtype):
    H = randn(seed, 3, m, n, dtype=dtype)
    assert torch.equal(elsa(H, *identity(m, n, dtype)), H)


@given(r=sizes, s=sizes, t=sizes, seed=seeds, dtype=dtypes)
def test_property_4_products_of_submatrices_in_both_layouts(r, s, t, seed, dtype):
    A, B = randn(seed, 2, r, s, dtype=dtype), randn(seed + 1, 2, s, t, dtype=dtype)
    H = torch.zeros(2, s + r, r + t, dtype=dtype)
    H[:, :s, :r], H[:, :s, r:] = A.mT, B
    expected = torch.zeros_like(H)
    expected[:, :r, r:] = A @ B
    close(elsa(H, *transposed_product(r, s, t, dtype)), expected, dtype)

    H = torch.zeros(2, r + s, s + t, dtype=dtype)
    H[:, :r, :s], H[:, r:, s:] = A, B
    expected = torch.zeros_like(H)
    expected[:, :r, s:] = A @ B
    close(elsa(H, *block_product(r, s, t, dtype)), expected, dtype)


# Modules


@pytest.mark.parametrize(("m", "n"), [(3, 8), (8, 3)])
def test_heads_are_summed(m, n):
    H = randn(0, 2, 4, m, n)
    module = ELSA(m, n, heads=3, init_std=0.5).double()
    torch.nn.init.normal_(module.biases)
    pairs = [[(module.weights[i, k], module.biases[i, k]) for i in range(3)] for k in range(3)]
    torch.testing.assert_close(module(H), sum(elsa(H, *pair) for pair in pairs))
    plain = LSA(n, heads=2, init_std=0.5).double()
    expected = sum(lsa(H, *plain.weights[:, k]) for k in range(2))
    torch.testing.assert_close(plain(H), expected)


def test_elsa_without_biases_is_lsa():
    H = randn(0, 4, 5)
    wide, plain = ELSA(4, 5, 2, 0.3).double(), LSA(5, 2, 0.3).double()
    wide.weights.data = plain.weights.data
    assert torch.equal(wide.eval()(H), plain.eval()(H))


@given(
    m=sizes,
    n=sizes,
    heads=st.integers(1, 3),
    lead=st.sampled_from([(), (2,), (2, 3)]),
    causal=st.booleans(),
    extended=st.booleans(),
    data=st.data(),
)
def test_what_is_trained_is_what_is_evaluated(m, n, heads, lead, causal, extended, data):
    """Associated in another order, and at some rows alone."""
    module = ELSA(m, n, heads, 0.5, causal) if extended else LSA(n, heads, 0.5, causal)
    module.double()
    H = randn(0, *lead, m, n)
    start = data.draw(st.integers(0, m - 1))
    rows = slice(start, data.draw(st.integers(start + 1, m)), data.draw(st.integers(1, 2)))
    expected = module.eval()(H)
    torch.testing.assert_close(module.train()(H), expected)
    torch.testing.assert_close(module.at(H, rows), expected[..., rows, :])


@given(
    m=sizes,
    n=sizes,
    heads=st.integers(1, 3),
    lead=st.sampled_from([(), (1,), (3,)]),
    prompts=st.integers(0, 3),
    needed=st.booleans(),
    data=st.data(),
)
def test_one_step_of_autograd_is_the_module_and_its_gradients(
    m, n, heads, lead, prompts, needed, data
):
    """H + LSA(H) and cells of a row of it, for one replica and for several at once."""
    H = randn(0, *lead, prompts, m, n).requires_grad_(needed)
    weights = randn(1, *lead, 3, heads, n, n).requires_grad_()
    row, column = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    columns = data.draw(st.sampled_from([slice(None), slice(column, column + 1)]))

    def written_out(H, weights):
        each = weights.unsqueeze(-5).unbind(-4)
        return H + sum(lsa(H, *(W[..., k, :, :] for W in each)) for k in range(heads))

    wanted = [H, weights] if needed else [weights]
    for found, expected in (
        (residual.rows(H, weights), written_out(H, weights)),
        (
            residual.cells(H, weights, row, columns),
            written_out(H, weights)[..., row : row + 1, columns],
        ),
    ):
        torch.testing.assert_close(found, expected)
        towards = randn(2, *expected.shape)
        ours, theirs = (torch.autograd.grad(t, wanted, towards) for t in (found, expected))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "args", [{"heads": 1}, {"layers": 2, "form": "enumerated"}, {"blocks": 2}, {"shared": True}]
)
def test_several_replicas_are_one_forward_pass(args):
    """The module's own, without vmap, on both forms of the input."""
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    config = LinearSelfAttention.Config(**{**args, "init_std": 0.1})
    modules = [LinearSelfAttention().build(task.signature, config).double() for _ in range(3)]
    assert_taken(modules, task)


def test_what_can_t_take_replicas_does_not_say_so():
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    cases = (LinearSelfAttention, {"mlp": True}), (ExtendedLinearSelfAttention, {})
    for architecture, args in cases:
        config = architecture.Config(**args)
        assert not architecture().build(task.signature, config).takes_replicas


def test_who_wrongly_says_to_take_replicas_is_vmapped_and_does_not_conform(monkeypatch, tmp_path):
    monkeypatch.setattr(MatrixModel, "takes_replicas", True)
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    with pytest.raises(ConformanceError, match="its form for several replicas differs: "):
        check_architecture(LinearSelfAttention(), task, MatrixConfig(mlp=True))
    record = run(
        model="lsa", task="ridge", model_args={"mlp": True}, task_args={"dim": 2, "examples": 3},
        recipe="smoke", recipe_args={"steps": 2}, seeds=2, out=tmp_path,
    )  # fmt: skip
    assert (record.training.replicas, record.training.engine) == (2, "vmapped")
    assert "not leading: " in record.training.note


@pytest.mark.parametrize("architecture", [LinearSelfAttention, ExtendedLinearSelfAttention])
@pytest.mark.parametrize("args", [{}, {"layers": 2, "mlp": True, "heads": 1}, {"blocks": 3}])
def test_in_training_the_output_module_computes_its_row_alone(architecture, args):
    task = RidgeRegression(RidgeConfig(dim=2, examples=3))
    config = architecture.Config(**{**args, "init_std": 0.1})
    model = architecture().build(task.signature, config).double()
    (batch,) = task.evaluation_set(4, 0, torch.float64)
    expected = model.eval()(batch.prompt)
    with Operators() as saved:
        torch.testing.assert_close(model.train()(batch.prompt), expected)
    assert expected.abs().min() > 0
    seen = []
    model.output.register_forward_hook(lambda *_: seen.append(1))
    with Operators() as whole:  # who watches the module sees all of it
        torch.testing.assert_close(model(batch.prompt), expected)
    assert seen
    assert saved.elements < whole.elements


@pytest.mark.parametrize("heads", [1, 2])
def test_no_prompts_are_none(heads):
    for module in (LSA(5, heads, 0.1), ELSA(4, 5, heads, 0.1)):
        assert module(torch.randn(0, 4, 5)).shape == (0, 4, 5)


# Input forms


def test_the_designed_input_is_equation_37():
    (batch,) = RidgeRegression(RidgeConfig(dim=2, examples=3)).evaluation_set(2, 0, torch.float64)
    p = batch.prompt
    H = designed(p, p.ridge, p.step)[1].numpy()
    x, y, u, ridge, step = (f[1].numpy() for f in p[1:])
    expected = np.block(
        [
            [np.sqrt(step) * x.T, np.zeros((2, 3)), np.zeros((2, 1)),
             np.sqrt(step * ridge) * np.eye(2), u.T, np.zeros((2, 1))],
            [np.zeros((1, 3)), np.sqrt(step) * y.T, np.ones((1, 1)),
             np.zeros((1, 2)), np.zeros((1, 1)), np.zeros((1, 1))],
        ]
    )  # fmt: skip
    np.testing.assert_allclose(H, expected, rtol=1e-15)
    layout = designed_layout(3, 2)
    assert H.shape == (layout.rows, layout.columns) == (3, 2 * 3 + 2 + 3)


def test_the_enumerated_input_is_equation_56():
    (batch,) = RidgeRegression(RidgeConfig(dim=2, examples=3)).evaluation_set(2, 0, torch.float64)
    p = batch.prompt
    H = enumerated(p, p.ridge, p.step)[1].numpy()
    x, y, u, ridge, step = (f[1].numpy() for f in p[1:])
    y0 = np.hstack([np.zeros((3, 1)), y])
    zero = np.zeros((2, 1))
    parts = [x.T, y0.T, ridge * np.eye(2), np.sqrt(step) * np.eye(2), u.T, zero, zero]
    np.testing.assert_allclose(H, np.hstack(parts), rtol=1e-15)
    layout = enumerated_layout(3, 2)
    assert H.shape == (layout.rows, layout.columns) == (2, 2 * 3 + 2 * 2 + 3)


# Construction ridge-gd

WAYS = [
    (LinearSelfAttention, {}),
    (LinearSelfAttention, {"shared": False}),
    (ExtendedLinearSelfAttention, {}),
    (ExtendedLinearSelfAttention, {"form": "designed"}),
]


def built(architecture, args, task, dtype, **more):
    construction = architecture.constructions["ridge-gd"]
    config, state = construction.build(task.signature, construction.Config(**args, **more), task)
    with default_dtype(dtype):
        model = architecture().build(task.signature, architecture.Config(**config))
    model.load_state_dict({name: value.to(dtype) for name, value in state.items()})
    return model.requires_grad_(False)


def descent(prompt, steps):
    config = GradientDescentConfig(steps=steps, step_size="prompt", normalize="sum")
    found = [w[..., 0] for w in GradientDescent().iterates(examples_of(prompt), config)]
    return torch.stack(found, dim=1)


@pytest.mark.parametrize(("architecture", "args"), WAYS)
@given(
    dim=st.integers(1, 5),
    examples=st.integers(1, 12),
    penalty=st.sampled_from([0.05, 3.0, (0.1, 10.0)]),
    step=st.sampled_from(["optimal", 0.01]),
    dtype=dtypes,
)
def test_every_module_is_one_step_of_gradient_descent(
    architecture, args, dim, examples, penalty, step, dtype
):
    task = RidgeRegression(RidgeConfig(dim=dim, examples=examples, ridge=penalty, step=step))
    (batch,) = task.evaluation_set(8, 0, dtype)
    model = built(architecture, args, task, dtype, steps=6)
    exact = descent(type(batch.prompt)(*(f.double() for f in batch.prompt)), 6)
    found = model.trajectory(batch.prompt)
    eps = torch.finfo(dtype).eps
    assert found.shape == (8, 7, dim)
    assert (found - exact).abs().max() <= 60 * eps * max(1.0, float(exact.abs().max()))
    answer = (batch.prompt.query[:, 0].double() * exact[:, -1]).sum(dim=1)
    bound = 200 * eps * max(1.0, float(answer.abs().max()), float(exact.abs().max()))
    assert (model(batch.prompt)[:, 0, 0] - answer).abs().max() <= bound


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-13), (torch.float64, 1e-30)], ids=str
)
@pytest.mark.parametrize(("architecture", "args"), WAYS)
def test_two_hundred_steps_reach_the_floor(architecture, args, dtype, bound):
    task = RidgeRegression(RidgeConfig())
    (batch,) = task.evaluation_set(256, 0, dtype)
    model = built(architecture, args, task, dtype, steps=200)
    errors = task.metrics(model(batch.prompt).double(), batch)["squared_error"]
    assert errors.median() <= bound


def test_no_steps_predict_zero():
    task = RidgeRegression(RidgeConfig())
    (batch,) = task.evaluation_set(4, 0, torch.float32)
    for architecture, args in WAYS:
        model = built(architecture, args, task, torch.float32, steps=0)
        assert (model(batch.prompt) == 0).all()


def test_least_squares_has_no_penalty_and_the_step_of_the_configuration():
    task = LeastSquares(FixedConfig())
    (batch,) = task.evaluation_set(8, 0, torch.float64)
    model = built(LinearSelfAttention, {}, task, torch.float64, steps=3)
    config = GradientDescentConfig(steps=3, step_size=0.5)
    w = GradientDescent().weights(examples_of(batch.prompt), config)
    torch.testing.assert_close(model(batch.prompt), batch.prompt.query @ w)


def test_the_record_shows_the_difference_at_every_step(tmp_path):
    for dtype, bound in (("float32", 1e-11), ("float64", 1e-28)):
        for model in ("lsa", "elsa"):
            record = run(
                model=model,
                task="ridge",
                weights="ridge-gd",
                weights_args={"steps": 10},
                task_args={"dim": 3, "examples": 8, "ridge": [0.1, 2.0]},
                dtype=dtype,
                metrics=("iterates",),
                eval_prompts=64,
                out=tmp_path,
            )
            curve = record.curves["iterate_error"]
            assert record.spec.origin == "constructed"
            assert curve.values == list(range(11))
            assert 0 < max(curve.max) < bound
    for path in tmp_path.glob("**/*.json"):
        assert all(check.holds for check in verify(path))


def test_training_starts_from_the_construction(tmp_path):
    for model in ("lsa", "elsa"):
        record = run(
            model=model,
            task="ridge",
            init="ridge-gd",
            weights_args={"steps": 2, "shared": False},
            perturb=1e-4,
            recipe="smoke",
            recipe_args={"learning_rate": 1e-6},
            task_args={"dim": 2, "examples": 4},
            seeds=2,
            eval_prompts=64,
            metrics=("alignment",),
            out=tmp_path,
        )
        assert record.spec.model_args["layers"] == 2
        assert record.metrics["alignment_distance"].median < 1e-3
        assert record.metrics["alignment_cosine"].median > 0.99


# Trained models


@pytest.mark.parametrize(
    ("architecture", "config"),
    [
        (LinearSelfAttention, MatrixConfig(layers=2)),
        (LinearSelfAttention, MatrixConfig(form="enumerated", layers=2, mlp=True, heads=2)),
        (LinearSelfAttention, MatrixConfig(layers=0)),
        (LinearSelfAttention, MatrixConfig(blocks=2, shared=True)),
        (ExtendedLinearSelfAttention, ExtendedConfig(layers=1)),
        (ExtendedLinearSelfAttention, ExtendedConfig(form="designed", layers=1, mlp=True)),
    ],
)
@pytest.mark.parametrize("name", ["ridge", "least-squares"])
def test_matrix_models_conform(architecture, config, name):
    check_architecture(architecture(), load_task(name, dim=3, examples=5), config)


@pytest.mark.parametrize("architecture", [LSATokens, ELSATokens])
@pytest.mark.parametrize(
    "config", [{}, {"causal": False}, {"layers": 2, "mlp": True, "heads": 2, "layer_norm": True}]
)
def test_token_models_conform(architecture, config):
    made = TokensConfig(width=8, **config)
    check_architecture(architecture(), LeastSquares(FixedConfig(examples=6)), made)
    check_architecture(architecture(), RidgeRegression(RidgeConfig(examples=6)), made)


def test_token_models_conform_on_prefixes():
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
    for architecture in (LSATokens(), ELSATokens()):
        check_architecture(architecture, task, TokensConfig(width=8, layers=2))


def test_shared_modules_have_one_set_of_parameters():
    task = RidgeRegression(RidgeConfig(dim=2, examples=4))
    counts = []
    for shared in (True, False):
        config = MatrixConfig(layers=4, shared=shared)
        model = LinearSelfAttention().build(task.signature, config)
        counts.append(sum(p.numel() for p in model.parameters()))
    s = designed_layout(4, 2).columns
    assert counts == [2 * 9 * s * s, 5 * 9 * s * s]


def test_what_they_can_t_do_is_said():
    prefixes = LeastSquaresPrefixes(LeastSquaresConfig())
    assert "not prefixes" in LinearSelfAttention().supports(prefixes.signature, MatrixConfig())
    with pytest.raises(UsageError, match="least-squares-prefixes"):
        run(model="elsa", task="least-squares-prefixes", weights="ridge-gd")


def test_arguments_that_contradict_a_construction_are_refused(tmp_path):
    for weights in ({"weights": "ridge-gd"}, {"init": "ridge-gd"}):
        with pytest.raises(UsageError, match=r"layers=7: the construction has layers=2"):
            run(model="lsa", task="ridge", weights_args={"steps": 2}, model_args={"layers": 7},
                out=tmp_path, **weights)  # fmt: skip


def test_a_step_size_of_its_own_is_refused_where_the_prompt_states_one(tmp_path):
    with pytest.raises(UsageError, match="the prompts state their own step"):
        run(model="lsa", task="ridge", weights="ridge-gd", model_args={"step": 3}, out=tmp_path)


@pytest.mark.slow
def test_a_trained_layer_of_lsa_finds_the_closed_form(tmp_path):
    """D(D+1)/(N+D+1) = 1.1538, one gradient step with η = N/(N+D+1) = 0.769."""
    record = run(
        model="lsa-tokens",
        task="least-squares",
        recipe="linear-attention",
        seeds=3,
        eval_prompts=65_536,
        metrics=("alignment",),
        out=tmp_path,
    )
    best = run(
        model="gradient-descent",
        task="least-squares",
        model_args={"steps": 1, "step_size": 20 / 26},
        eval_prompts=65_536,
        out=tmp_path,
    )
    for seed in record.seeds:
        assert seed.metrics["squared_error"].mean == pytest.approx(30 / 26, rel=0.02)
        assert seed.metrics["squared_error"].mean == pytest.approx(
            best.metrics["squared_error"].mean, rel=0.01
        )
        assert seed.metrics["alignment_steps"].median == 1
        assert seed.metrics["alignment_step_size"].median == pytest.approx(20 / 26, rel=0.05)
        assert seed.metrics["alignment_cosine"].median > 0.999
