"""L-BFGS steps of the engine: what they reach, and what is refused."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import Recipe, UsageError
from iclbench.api.prompts import Batch, Sequence
from iclbench.training.objective import Objective
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import make_optimizer, with_whole_optimizer
from iclbench.training.replicas import Replicas


class Model(nn.Module):
    """Tokens (B, 1, 4) → (B, 1, 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(4, 3)

    def forward(self, prompt):
        return self.map(prompt.tokens)


def squared(prediction, target):
    return (prediction - target).square().mean(dim=(1, 2))


def problem(answer, dtype=torch.float64):
    """Two replicas, a batch of each, and the targets that `answer` makes of the tokens."""
    torch.manual_seed(0)
    modules = [Model().to(dtype) for _ in range(2)]
    tokens = torch.randn(2, 200, 1, 4, dtype=dtype)
    return Replicas(modules, torch.device("cpu")), Batch(Sequence(tokens), answer(tokens))


def step(replicas, batch, alive=(True, True), loss=squared, **arguments):
    optimizer = make_optimizer(replicas, "lbfgs", arguments)
    rates = torch.ones(2, dtype=replicas.flat.dtype)
    objective = Objective(replicas, batch, loss)
    optimizer.update(
        Update(torch.zeros_like(replicas.flat), rates, torch.tensor(alive), 1, objective)
    )
    return optimizer


def test_one_step_solves_a_quadratic_to_the_floor_of_the_dtype():
    matrix = torch.randn(4, 3, dtype=torch.float64)
    replicas, batch = problem(lambda x: x @ matrix + 0.5)
    step(replicas, batch)
    for r in range(2):
        weight, bias = replicas.split(replicas.flat[r]).values()
        torch.testing.assert_close(weight.T, matrix, atol=1e-14, rtol=0)
        torch.testing.assert_close(bias, torch.full((3,), 0.5).double(), atol=1e-14, rtol=0)


def test_it_is_torchs_on_the_batch_of_each_replica():
    """By a loss that is 1 where the step begins."""
    replicas, batch = problem(lambda x: x[..., :3].sin())
    expected = []
    for r in range(2):
        weight, bias = (
            p.clone().requires_grad_() for p in replicas.split(replicas.flat[r]).values()
        )
        optimizer = torch.optim.LBFGS(
            [weight, bias],
            max_iter=3,
            history_size=2,
            tolerance_grad=0,
            tolerance_change=0,
            line_search_fn="strong_wolfe",
        )
        tokens, target = batch.prompt.tokens[r], batch.target[r]
        first = []

        def closure():
            loss = squared(tokens @ weight.T + bias, target).mean()  # noqa: B023
            first.append(loss.detach())  # noqa: B023
            loss = loss / first[0]  # noqa: B023
            weight.grad, bias.grad = torch.autograd.grad(loss, (weight, bias))  # noqa: B023
            return loss

        optimizer.step(closure)
        expected.append(torch.cat([weight.detach().reshape(-1), bias.detach()]))
    step(replicas, batch, iterations=3, history=2)
    torch.testing.assert_close(replicas.flat, torch.stack(expected))


def test_a_replica_that_is_not_alive_stays():
    replicas, batch = problem(lambda x: x[..., :3])
    before = replicas.flat.clone()
    step(replicas, batch, alive=(True, False))
    assert torch.equal(replicas.flat[1], before[1])
    assert not torch.equal(replicas.flat[0], before[0])


def test_a_step_that_ends_nowhere_is_taken_back():
    replicas, batch = problem(lambda x: x[..., :3])
    before = replicas.flat.clone()
    start = replicas.predict(0, before[0], Sequence(batch.prompt.tokens[0]))

    def fragile(prediction, target):
        """Finite where the step begins, and at no other parameters."""
        begins = torch.equal(prediction, start)
        return squared(prediction, target) * (1.0 if begins else float("nan"))

    step(replicas, batch, alive=(True, False), loss=fragile)
    assert torch.equal(replicas.flat, before)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"clip": 1.0}, "computes its own gradient"),
        ({"gradient_memory": 0.9}, "computes its own gradient"),
        ({"accumulate": 2}, "takes whole batches"),
        ({"autocast": "bfloat16"}, "needs full precision"),
        ({"optimizer_args": {"iterations": 0}}, "iterations"),
        ({"optimizer_args": {"lr": 1.0}}, "lr is the recipe's learning_rate"),
    ],
)
@pytest.mark.parametrize("optimizer", ["lbfgs", "LBFGS"])
def test_what_would_do_nothing_is_refused(optimizer, args, reason):
    with pytest.raises(UsageError, match=reason):
        with_whole_optimizer(Recipe(steps=1, batch=2, optimizer=optimizer, **args))


def test_gauss_newton_takes_whole_batches_too():
    with pytest.raises(UsageError, match="takes whole batches"):
        with_whole_optimizer(Recipe(steps=1, batch=4, optimizer="gauss-newton", accumulate=2))


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6])
def test_the_unit_of_the_loss_means_nothing(unit):
    """torch keeps no curvature below 1e-10, and would descend along the gradient alone."""
    results = []
    for factor in (1.0, unit):
        replicas, batch = problem(lambda x: x[..., :3].sin())
        step(replicas, batch, loss=lambda p, t, c=factor: c * squared(p, t), iterations=20)
        results.append(replicas.flat)
    torch.testing.assert_close(results[1], results[0], atol=1e-7, rtol=0)


def test_a_line_search_leaves_buffers_as_they_were():
    class Counting(Model):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.register_buffer("scale", torch.ones(()))

        def forward(self, prompt):
            self.seen.add_(1)
            self.scale = 0.9 * self.scale
            return super().forward(prompt) / (1 + self.seen)

    _, batch = problem(lambda x: x[..., :3])
    replicas = Replicas([Counting().double() for _ in range(2)], torch.device("cpu"))
    before = replicas.flat.clone()
    step(replicas, batch)
    assert not torch.equal(replicas.flat, before)
    assert replicas.frozen_and_buffers["seen"].tolist() == [0, 0]
    assert replicas.frozen_and_buffers["scale"].tolist() == [1, 1]
