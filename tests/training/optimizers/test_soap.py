"""SOAP follows pytorch-optimizer step for step, and Adam where it has no eigenbasis."""

from __future__ import annotations

import json
from unittest.mock import patch

import pytest
import torch
from torch import nn

from iclbench import Recipe, UsageError
from iclbench.training.cuda_graph import refusal
from iclbench.training.optimizers import eigen
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import make_optimizer, with_whole_optimizer
from iclbench.training.replicas import Replicas

RATES = [1e-2, 3e-2, 1e-1]


def modules(dtype: torch.dtype) -> list[nn.Module]:
    """Two layers of one shape, a vector, an axis of one, and a filter with three axes."""
    torch.manual_seed(0)
    return [
        nn.Sequential(
            nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(3, 1, bias=False), nn.Conv1d(2, 3, 4)
        ).to(dtype)
        for _ in RATES
    ]


def updates(replicas: Replicas, steps: int, *, alive=(True, True, True), first: int = 1):
    for step in range(first, first + steps):
        random = torch.Generator().manual_seed(step)
        noise = torch.randn(replicas.flat.shape, generator=random, dtype=torch.float64)
        grad = torch.sin(3 * replicas.flat) + 0.1 * noise.to(replicas.flat)
        rates = torch.tensor(RATES, dtype=torch.float64).to(replicas.flat)
        yield Update(grad, rates, torch.tensor(alive), step)


def trained(name: str, arguments: dict, steps: int, dtype=torch.float64) -> torch.Tensor:
    replicas = Replicas(modules(dtype), torch.device("cpu"))
    optimizer = make_optimizer(replicas, name, arguments)
    for update in updates(replicas, steps):
        optimizer.update(update)
    return replicas.flat


def test_matrices_are_diagonalized_in_parts(monkeypatch):
    """As many as cuSOLVER takes at once; the parts are those of the whole."""
    whole = trained("soap", {}, 5)
    monkeypatch.setattr(eigen, "AT_ONCE", 2)
    assert torch.equal(trained("soap", {}, 5), whole)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"weight_decay": 0.0}),
        ({"weight_decay": 0.3, "every": 3}, {"weight_decay": 0.3, "precondition_frequency": 3}),
        (
            {"betas": (0.8, 0.9), "shampoo_beta": 0.7, "eps": 1e-12, "every": 1},
            {
                "betas": (0.8, 0.9),
                "shampoo_beta": 0.7,
                "eps": 1e-12,
                "precondition_frequency": 1,
                "weight_decay": 0.0,
            },
        ),
        ({"longest": 4}, {"max_precondition_dim": 4, "weight_decay": 0.0}),
    ],
)
def test_every_step_is_the_package_s(ours, theirs):
    pytest.importorskip("pytorch_optimizer")
    qr = torch.linalg.qr
    # The package decomposes in float32, whatever the dtype; here it gets the product as it was.
    products: list[torch.Tensor] = []
    to = torch.Tensor.to

    def keep(tensor, *args, **kwargs):
        if args == (torch.float32,) and tensor.dtype == torch.float64:
            products.append(tensor)
        return to(tensor, *args, **kwargs)

    def in_float64(product):
        return qr(products.pop() if products else product)

    with patch.object(torch.Tensor, "to", keep), patch.object(torch.linalg, "qr", in_float64):
        expected = trained("pytorch_optimizer.SOAP", theirs, 40)
    torch.testing.assert_close(trained("soap", ours, 40), expected, rtol=1e-9, atol=1e-11)


def test_without_eigenbases_it_is_adam_a_step_late():
    # ε is added to another multiple of the squares' root than in Adam, so it is left out.
    arguments = {"betas": (0.9, 0.99), "eps": 0.0}
    replicas = [Replicas(modules(torch.float64), torch.device("cpu")) for _ in range(2)]
    late = make_optimizer(replicas[0], "soap", {"longest": 1, **arguments})
    adam = make_optimizer(replicas[1], "adam", arguments)
    for step, update in enumerate(updates(replicas[0], 20), start=1):
        late.update(update)
        if step > 1:
            adam.update(update._replace(step=step - 1))
        torch.testing.assert_close(replicas[0].flat, replicas[1].flat, rtol=1e-12, atol=1e-14)


def test_it_continues_to_the_same_bits():
    whole = trained("soap", {"every": 3}, 11)
    replicas = Replicas(modules(torch.float64), torch.device("cpu"))
    first = make_optimizer(replicas, "soap", {"every": 3})
    for update in updates(replicas, 4):
        first.update(update)
    tensors, values = first.state()
    copied = {name: tensor.clone() for name, tensor in tensors.items()}
    second = make_optimizer(replicas, "soap", {"every": 3})
    second.load(copied, json.loads(json.dumps(values)))
    for update in updates(replicas, 7, first=5):
        second.update(update)
    assert torch.equal(replicas.flat, whole)


def test_a_diverged_replica_keeps_its_parameters_and_disturbs_no_other():
    whole = trained("soap", {"every": 2}, 9)
    replicas = Replicas(modules(torch.float64), torch.device("cpu"))
    optimizer = make_optimizer(replicas, "soap", {"every": 2})
    start = replicas.flat.clone()
    for update in updates(replicas, 9, alive=(True, False, True)):
        update.grad[1] = torch.nan
        optimizer.update(update)
    assert torch.equal(replicas.flat[1], start[1])
    torch.testing.assert_close(replicas.flat[[0, 2]], whole[[0, 2]], rtol=1e-12, atol=1e-14)


def test_parameters_without_elements_are_no_obstacle():
    class Empty(nn.Module):
        def __init__(self):
            super().__init__()
            self.none, self.rows = nn.Parameter(torch.zeros(0)), nn.Parameter(torch.zeros(0, 4))
            self.matrix = nn.Parameter(torch.ones(3, 4, dtype=torch.float64))

    replicas = Replicas([Empty().double() for _ in RATES], torch.device("cpu"))
    optimizer = make_optimizer(replicas, "soap", {"every": 2})
    for update in updates(replicas, 5):
        optimizer.update(update)
    assert replicas.flat.isfinite().all()
    assert (replicas.flat != 1).all()


def test_a_first_gradient_that_overflows_costs_no_other_replica():
    whole = trained("soap", {}, 9, torch.float32)
    replicas = Replicas(modules(torch.float32), torch.device("cpu"))
    optimizer = make_optimizer(replicas, "soap", {})
    for update in updates(replicas, 9):
        if update.step == 1:
            update.grad[1] *= 1e30
        optimizer.update(update)
    torch.testing.assert_close(replicas.flat[[0, 2]], whole[[0, 2]], rtol=1e-4, atol=1e-6)


def test_a_group_trains_as_each_replica_alone():
    together = trained("soap", {}, 25)
    replicas = Replicas(modules(torch.float64)[:1], torch.device("cpu"))
    optimizer = make_optimizer(replicas, "soap", {})
    for step in range(1, 26):
        noise = torch.randn(
            together.shape, generator=torch.Generator().manual_seed(step), dtype=torch.float64
        )[:1]
        grad = torch.sin(3 * replicas.flat) + 0.1 * noise
        rate = torch.tensor(RATES[:1], dtype=torch.float64)
        optimizer.update(Update(grad, rate, torch.tensor([True]), step))
    torch.testing.assert_close(replicas.flat[0], together[0], rtol=1e-12, atol=1e-14)


def test_it_turns_an_ill_conditioned_quadratic_upright():
    """Loss ½‖A(W − W*)B‖² with rotated A and B, where Adam's axes are the wrong ones."""
    random = torch.Generator().manual_seed(0)
    spectrum = torch.logspace(0, -2, 8, dtype=torch.float64)

    def rotated() -> torch.Tensor:
        noise = torch.randn(8, 8, generator=random, dtype=torch.float64)
        q = torch.linalg.qr(noise)[0]
        return q @ spectrum.diag() @ q.mT

    a, b = rotated(), rotated()
    target = torch.randn(8, 8, generator=random, dtype=torch.float64)
    left = {}
    for name in ("adam", "soap"):
        replicas = Replicas([nn.Linear(8, 8, bias=False).double()], torch.device("cpu"))
        replicas.flat.zero_()
        optimizer = make_optimizer(replicas, name, {})
        for step in range(1, 1001):
            error = a @ (replicas.flat.view(8, 8) - target) @ b
            grad = (a @ error @ b).view(1, -1)
            rate = torch.tensor([0.02 * (1 - step / 1001)], dtype=torch.float64)
            optimizer.update(Update(grad, rate, torch.tensor([True]), step))
        left[name] = float((replicas.flat.view(8, 8) - target).norm() / target.norm())
    assert left["soap"] < left["adam"] / 3, left


@pytest.mark.parametrize(
    ("arguments", "message"), [({"every": 0}, "every"), ({"beta": 1}, "unknown field 'beta'")]
)
def test_bad_arguments_are_refused_before_the_run(arguments, message):
    with pytest.raises(UsageError, match=message):
        with_whole_optimizer(Recipe(steps=1, batch=1, optimizer="soap", optimizer_args=arguments))


def test_no_graph_captures_it():
    replicas = Replicas(modules(torch.float64), torch.device("cpu"))

    class State:
        device = torch.device("cuda")
        adaptive = None
        optimizer = make_optimizer(replicas, "soap", {})

    State.replicas = replicas
    assert refusal(State) == "the optimizer decides on the host"
