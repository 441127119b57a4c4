"""Gauss–Newton steps against the formula written out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import Recipe, UsageError
from iclbench.api.prompts import Batch, Sequence
from iclbench.training.gradients.program import replicas_of
from iclbench.training.objective import Objective
from iclbench.training.optimizers import gauss_newton
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import make_optimizer, with_whole_optimizer
from iclbench.training.optimizers.gauss_newton import GaussNewton, curvature, divided
from iclbench.training.replicas import Replicas

CPU = torch.device("cpu")


class Model(nn.Module):
    """Tokens (B, 1, 4) → (B, 1, 3)."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, prompt):
        return self.layers(prompt.tokens)


def squared(prediction, target):
    return (prediction - target).square().mean(dim=(1, 2))


def cross_entropy(prediction, target):
    return nn.functional.cross_entropy(prediction[:, 0], target[:, 0], reduction="none")


def problem(layers, target, replicas=2, n=200, dtype=torch.float64):
    """Replicas of a model, a batch of each, and the targets that `target` makes of the tokens."""
    torch.manual_seed(0)
    modules = [Model(*layers()).to(dtype) for _ in range(replicas)]
    tokens = torch.randn(replicas, n, 1, 4, dtype=dtype)
    return Replicas(modules, CPU), Batch(Sequence(tokens), target(tokens))


def step(replicas, batch, loss, optimizer, rate=1.0, alive=(True, True)):
    rates = torch.full((replicas.count,), rate, dtype=replicas.flat.dtype)
    objective = Objective(replicas, batch, loss)
    optimizer.update(
        Update(torch.zeros_like(replicas.flat), rates, torch.tensor(alive), 1, objective)
    )


def linear():
    return [nn.Linear(4, 3)]


def test_one_undamped_step_solves_a_linear_model():
    matrix = torch.randn(4, 3, dtype=torch.float64)
    replicas, batch = problem(linear, lambda x: x @ matrix + 0.5)
    step(replicas, batch, squared, GaussNewton(replicas, {"damping": 1e-13}))
    for r in range(2):
        weight, bias = replicas.split(replicas.flat[r]).values()
        torch.testing.assert_close(weight.T, matrix, atol=1e-8, rtol=0)
        torch.testing.assert_close(bias, torch.full((3,), 0.5).double(), atol=1e-8, rtol=0)


@pytest.mark.parametrize("loss", [squared, cross_entropy], ids=lambda f: f.__name__)
def test_the_matrix_and_the_gradient_are_those_of_the_formula(loss):
    def layers():
        return [nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)]

    def target(tokens):
        if loss is squared:
            return torch.randn(*tokens.shape[:2], 1, 3, dtype=torch.float64)
        return torch.randint(3, (*tokens.shape[:2], 1))

    replicas, batch = problem(layers, target, n=40)
    objective = Objective(replicas, batch, loss)
    fitting, _ = divided(replicas_of(objective.batch, 1), 0.25)
    matrix, slope = curvature(objective, 1, replicas.flat[1], fitting)
    tokens, answers = batch.prompt.tokens[1, :30], batch.target[1, :30]
    row = replicas.flat[1].detach().requires_grad_()
    prediction = objective.prediction(1, row, Sequence(tokens))
    (expected,) = torch.autograd.grad(loss(prediction, answers).mean(), row, retain_graph=True)
    torch.testing.assert_close(slope, expected)
    total = torch.zeros_like(matrix)
    for i in range(30):
        J = torch.stack(
            [torch.autograd.grad(prediction[i, 0, k], row, retain_graph=True)[0] for k in range(3)]
        )
        p = prediction[i, 0].detach().softmax(dim=0)
        H = 2 / 3 * torch.eye(3).double() if loss is squared else p.diag() - p.outer(p)
        total += J.T @ H @ J / 30
    torch.testing.assert_close(matrix, total)


def test_a_step_that_does_not_help_is_not_taken_and_the_damping_grows():
    replicas, batch = problem(linear, lambda x: torch.zeros(*x.shape[:2], 1, 3).double())
    replicas.flat.zero_()
    optimizer = GaussNewton(replicas, {"damping": 0.5})
    step(replicas, batch, squared, optimizer)
    assert (replicas.flat == 0).all()
    assert optimizer.damping.tolist() == [8.0, 8.0]


def test_a_frozen_replica_stays_and_the_rate_scales_the_step():
    matrix = torch.randn(4, 3, dtype=torch.float64)
    replicas, batch = problem(linear, lambda x: x @ matrix)
    before = replicas.flat.clone()
    step(replicas, batch, squared, GaussNewton(replicas, {"damping": 1e-13}), 0.5, (True, False))
    assert torch.equal(replicas.flat[1], before[1])
    weight, _ = replicas.split(replicas.flat[0]).values()
    old, _ = replicas.split(before[0]).values()
    torch.testing.assert_close(weight, (old + matrix.T) / 2, atol=1e-8, rtol=0)


def test_float32_is_solved_in_float64_and_the_damping_is_continued():
    matrix = torch.randn(4, 3)
    replicas, batch = problem(linear, lambda x: x @ matrix, dtype=torch.float32)
    optimizer = make_optimizer(replicas, "gauss-newton", {})
    for _ in range(8):
        step(replicas, batch, squared, optimizer)
    torch.testing.assert_close(
        replicas.split(replicas.flat[0])["layers.0.weight"].T, matrix, atol=1e-5, rtol=0
    )
    again = make_optimizer(replicas, "gauss-newton", {})
    again.load(*optimizer.state())
    assert torch.equal(again.damping, optimizer.damping)
    assert (again.damping != 1e-2).all()


def test_what_would_do_nothing_is_refused():
    recipe = Recipe(steps=1, batch=2, optimizer="gauss-newton", clip=1.0)
    with pytest.raises(UsageError, match="computes its own gradient"):
        with_whole_optimizer(recipe)
    with pytest.raises(UsageError, match="holdout"):
        with_whole_optimizer(
            recipe.model_copy(update={"clip": None, "optimizer_args": {"holdout": 1}})
        )
    with pytest.raises(UsageError, match="two prompts or more"):
        with_whole_optimizer(recipe.model_copy(update={"clip": None, "batch": 1}))


def test_matrices_that_do_not_fit_are_refused(monkeypatch):
    replicas, _ = problem(linear, lambda x: x @ torch.ones(4, 3).double())
    needed = gauss_newton.MATRICES * 8 * replicas.flat.shape[1] ** 2
    monkeypatch.setattr(gauss_newton, "machine_memory", lambda: needed)
    GaussNewton(replicas, {})
    monkeypatch.setattr(gauss_newton, "machine_memory", lambda: needed - 1)
    with pytest.raises(UsageError, match="gauss-newton needs"):
        GaussNewton(replicas, {})


def test_after_many_refusals_it_can_still_learn():
    replicas, useless = problem(linear, lambda x: torch.zeros(*x.shape[:2], 1, 3).double())
    replicas.flat.zero_()
    optimizer = GaussNewton(replicas, {})
    for _ in range(50):
        step(replicas, useless, squared, optimizer)
    matrix = torch.randn(4, 3, dtype=torch.float64)
    _, useful = problem(linear, lambda x: x @ matrix)
    for _ in range(30):
        step(replicas, useful, squared, optimizer)
    torch.testing.assert_close(
        replicas.split(replicas.flat[0])["layers.0.weight"].T, matrix, atol=1e-5, rtol=0
    )


def test_the_damping_falls_to_a_limit_from_which_it_grows_again():
    matrix = torch.randn(4, 3, dtype=torch.float64)
    replicas, batch = problem(linear, lambda x: x @ matrix)
    optimizer = GaussNewton(replicas, {"damping": 1e-2})
    optimizer.damping.fill_(1e-300)
    step(replicas, batch, squared, optimizer)
    assert optimizer.damping.tolist() == [1e-2 / gauss_newton.LARGEST] * 2


@pytest.mark.parametrize("layers", [lambda: [nn.Linear(4, 3), nn.BatchNorm1d(1)]])
def test_a_model_that_mixes_prompts_is_refused(layers):
    replicas, batch = problem(layers, lambda x: x[..., :3])
    optimizer = make_optimizer(replicas, "gauss-newton", {})
    with pytest.raises(UsageError, match=r"prompt by prompt .*; use lbfgs"):
        optimizer.require_suited(Objective(replicas, batch, squared), draws=False)
