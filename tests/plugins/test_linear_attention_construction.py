"""The paper's input matrices, and the construction of gradient descent on them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import run, verify
from iclbench.precision import default_dtype
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_linear_attention.architecture import (
    ExtendedLinearSelfAttention,
    LinearSelfAttention,
)
from iclbench_linear_attention.forms import (
    designed,
    designed_layout,
    enumerated,
    enumerated_layout,
)
from iclbench_solvers.iterative import GradientDescent, GradientDescentConfig
from iclbench_solvers.solver import examples_of

dtypes = st.sampled_from([torch.float32, torch.float64])


def test_designed_input_matches_equation_37():
    (batch,) = RidgeRegression(RidgeConfig(dim=2, examples=3)).evaluation_batches(
        2, 0, torch.float64
    )
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


def test_enumerated_input_matches_equation_56():
    (batch,) = RidgeRegression(RidgeConfig(dim=2, examples=3)).evaluation_batches(
        2, 0, torch.float64
    )
    p = batch.prompt
    H = enumerated(p, p.ridge, p.step)[1].numpy()
    x, y, u, ridge, step = (f[1].numpy() for f in p[1:])
    y0 = np.hstack([np.zeros((3, 1)), y])
    zero = np.zeros((2, 1))
    parts = [x.T, y0.T, ridge * np.eye(2), np.sqrt(step) * np.eye(2), u.T, zero, zero]
    np.testing.assert_allclose(H, np.hstack(parts), rtol=1e-15)
    layout = enumerated_layout(3, 2)
    assert H.shape == (layout.rows, layout.columns) == (2, 2 * 3 + 2 * 2 + 3)


VARIANTS = [
    (LinearSelfAttention, {}),
    (LinearSelfAttention, {"shared": False}),
    (ExtendedLinearSelfAttention, {}),
    (ExtendedLinearSelfAttention, {"form": "designed"}),
]


def build(architecture, args, task, dtype, steps):
    construction = architecture.constructions["ridge-gd"]
    config, state = construction.build(
        task.signature, construction.Config(**args, steps=steps), task
    )
    with default_dtype(dtype):
        model = architecture().build(task.signature, architecture.Config(**config))
    model.load_state_dict({name: value.to(dtype) for name, value in state.items()})
    return model.requires_grad_(False)


def descent(prompt, steps):
    config = GradientDescentConfig(steps=steps, step_size="prompt", normalize="sum")
    iterates = GradientDescent().iterates(examples_of(prompt), config)
    return torch.stack([w[..., 0] for w in iterates], dim=1)


@pytest.mark.parametrize(("architecture", "args"), VARIANTS)
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
    (batch,) = task.evaluation_batches(8, 0, dtype)
    model = build(architecture, args, task, dtype, steps=6)
    exact = descent(type(batch.prompt)(*(f.double() for f in batch.prompt)), 6)
    trajectory = model.trajectory(batch.prompt)
    eps = torch.finfo(dtype).eps
    assert trajectory.shape == (8, 7, dim)
    assert (trajectory - exact).abs().max() <= 60 * eps * max(1.0, float(exact.abs().max()))
    answer = (batch.prompt.query[:, 0].double() * exact[:, -1]).sum(dim=1)
    bound = 200 * eps * max(1.0, float(answer.abs().max()), float(exact.abs().max()))
    assert (model(batch.prompt)[:, 0, 0] - answer).abs().max() <= bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-13), (torch.float64, 1e-30)], ids=str
)
@pytest.mark.parametrize(("architecture", "args"), VARIANTS)
def test_two_hundred_steps_reach_the_floor(architecture, args, dtype, bound):
    task = RidgeRegression(RidgeConfig())
    (batch,) = task.evaluation_batches(256, 0, dtype)
    model = build(architecture, args, task, dtype, steps=200)
    errors = task.metrics(model(batch.prompt).double(), batch)["squared_error"]
    assert errors.median() <= bound


def test_zero_steps_predict_zero():
    task = RidgeRegression(RidgeConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    for architecture, args in VARIANTS:
        model = build(architecture, args, task, torch.float32, steps=0)
        assert (model(batch.prompt) == 0).all()


def test_on_least_squares_the_penalty_is_zero_and_the_step_is_the_argument():
    task = LeastSquares(FixedConfig())
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    model = build(LinearSelfAttention, {}, task, torch.float64, steps=3)
    # 1/(1 + √(D/N))² at D = 5, N = 20.
    config = GradientDescentConfig(steps=3, step_size=4 / 9)
    w = GradientDescent().weights(examples_of(batch.prompt), config)
    torch.testing.assert_close(model(batch.prompt), batch.prompt.query @ w)


def test_record_shows_the_difference_at_every_step(tmp_path):
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


@pytest.mark.slow
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
