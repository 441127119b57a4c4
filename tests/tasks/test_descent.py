"""The tasks least-squares-features, gradient and gradient-steps, and iterated evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from iclbench import EvaluationContext, load_task, run
from iclbench.kit.tasks import check_task

CONTEXT = EvaluationContext(torch.device("cpu"), torch.Generator(), None, 7)
NAMES = ("least-squares-features", "gradient", "gradient-steps")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(dim=st.integers(1, 4), examples=st.integers(1, 7), features=st.sampled_from([0, 1, 2]))
def test_the_tasks_conform_in_every_shape(name, dim, examples, features):
    extra = {"iterates": 3} if name == "gradient" else {}
    check_task(load_task(name, dim=dim, examples=examples, features=features, **extra), n=3)


@pytest.mark.parametrize("features", [0, 1, 2])
def test_tokens_hold_the_paper_s_features(features):
    task = load_task("gradient", dim=2, examples=3, features=features)
    (batch,) = task.evaluation_batches(2, 0, torch.float64)
    p = batch.prompt
    x, y, w = p.x[1].numpy(), p.y[1, :, 0].numpy(), p.w[1, 0].numpy()
    yx = [y[i] * x[i] for i in range(3)]
    xx = [np.outer(x[i], x[i]).ravel() for i in range(3)]
    last = np.zeros(9)
    if features == 0:
        yx, xx = [np.zeros(2)] * 3, [np.zeros(4)] * 3
    if features == 2:
        yx, xx = [sum(yx)] * 3, [sum(xx)] * 3
        last = np.concatenate([np.zeros(3), yx[0], xx[0]])
    last[:2] = w
    rows = [np.concatenate([x[i], [y[i]], yx[i], xx[i]]) for i in range(3)]
    np.testing.assert_allclose(p.tokens[1].numpy(), np.stack([*rows, last]), atol=1e-14)
    (plain,) = load_task("least-squares-features", dim=2, examples=3, features=features
                         ).evaluation_batches(2, 0, torch.float64)  # fmt: skip
    np.testing.assert_allclose(plain.prompt.tokens[1].numpy(), np.stack(rows), atol=1e-14)


def test_the_target_is_the_gradient_of_the_mean_squared_error():
    (batch,) = load_task("gradient").evaluation_batches(5, 0, torch.float64)
    w = batch.prompt.w.clone().requires_grad_()
    residual = batch.prompt.x @ w.mT - batch.prompt.y
    loss = 0.5 * residual.square().mean(dim=1).sum()
    (expected,) = torch.autograd.grad(loss, w)
    torch.testing.assert_close(batch.target, expected)


def test_gradient_steps_asks_for_gradient_descent():
    task = load_task("gradient-steps", dim=3, examples=6, steps=4, step_size=0.3)
    (batch,) = task.evaluation_batches(3, 0, torch.float64)
    for i in range(3):
        x, y = batch.prompt.x[i].numpy(), batch.prompt.y[i].numpy()
        w = batch.prompt.w[i].numpy().T
        for _ in range(4):
            w = w - 0.3 * x.T @ (x @ w - y) / 6
        np.testing.assert_allclose(batch.target[i].numpy(), w.T, atol=1e-13)


class ExactGradient(nn.Module):
    """Computes the gradient only from the tokens, as a sequence model would."""

    def forward(self, prompt):
        dim = prompt.w.shape[2]
        x, y = prompt.tokens[:, :-1, :dim], prompt.tokens[:, :-1, dim : dim + 1]
        w = prompt.tokens[:, -1:, :dim]
        return ((x @ w.mT - y).mT @ x) / x.shape[1]


def test_evaluation_iterates_predictions_from_the_prompt_s_weights():
    task = load_task("gradient", iterates=20, step_size=0.4)
    (batch,) = task.evaluation_batches(20, 0, torch.float64)
    metrics = task.evaluate(ExactGradient(), batch, CONTEXT)
    w, w_star = batch.prompt.w, batch.truth["w"]
    for t in range(21):
        error = w - w_star
        torch.testing.assert_close(
            metrics["weight_error_by_iterate"][:, t], error.square().sum(dim=(1, 2))
        )
        at_query = (error * batch.prompt.query).sum(dim=2)[:, 0].square()
        torch.testing.assert_close(metrics["query_error_by_iterate"][:, t], at_query)
        w = w - 0.4 * ((batch.prompt.x @ w.mT - batch.prompt.y).mT @ batch.prompt.x) / 20
    assert torch.equal(metrics["weight_error"], metrics["weight_error_by_iterate"][:, -1])
    assert metrics["gradient_error"].max() < 1e-28


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-13), (torch.float64, 1e-30)], ids=str
)
def test_the_floor_is_gradient_descent_in_the_prompt_s_dtype(dtype, bound):
    task = load_task("gradient")
    (batch,) = task.evaluation_batches(128, 0, dtype)
    floor = task.floor(batch, CONTEXT)
    assert 0 < floor["weight_error"].median() < bound


def test_long_descents_show_some_of_their_iterates():
    """At them the curve is that of the whole descent, and the score is the last."""
    task = load_task("gradient", dim=2, examples=4, iterates=200)
    assert load_task("gradient", iterates=20).shown == list(range(21))
    assert task.shown[:4] == [0, 1, 2, 3]
    assert task.shown[-1] == 200
    assert len(task.shown) <= 22
    (batch,) = task.evaluation_batches(5, 0, torch.float64)
    floor = task.floor(batch, CONTEXT)
    w = batch.prompt.w
    for t in range(201):
        if t in task.shown:
            expected = (w - batch.truth["w"]).square().sum(dim=(1, 2))
            got = floor["weight_error_by_iterate"][:, task.shown.index(t)]
            torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-28)
        w = w - 0.5 * batch.prompt.gradient(w)
    assert torch.equal(floor["weight_error"], floor["weight_error_by_iterate"][:, -1])
    for scores in (floor, task.chance(batch), task.errors_at(batch, torch.zeros_like)):
        for name, axis in task.axes.items():
            assert scores[name].shape == (5, len(axis.values))


def test_a_record_holds_every_iterate(tmp_path):
    record = run(
        model="exact-gradient",
        task="gradient",
        task_args={"iterates": 12},
        eval_prompts=64,
        out=tmp_path,
    )
    curve = record.curves["weight_error_by_iterate"]
    assert curve.values == list(range(13))
    assert all(a > b for a, b in zip(curve.median, curve.median[1:], strict=False))
    assert record.main.floor.curves["weight_error_by_iterate"].median[12] == pytest.approx(
        curve.median[12], rel=1e-3
    )
