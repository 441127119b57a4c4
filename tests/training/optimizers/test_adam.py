"""The stacked optimizers follow torch.optim step for step, one learning rate a replica."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench.training.optimizers import adam
from iclbench.training.optimizers.base import Update
from iclbench.training.optimizers.choice import make_optimizer
from iclbench.training.replicas import Replicas

RATES = [1e-2, 3e-2, 1e-1]

OWN = [
    ("adam", {}, torch.optim.Adam),
    ("adam", {"betas": (0.8, 0.95), "eps": 1e-16, "weight_decay": 0.1}, torch.optim.Adam),
    ("adamw", {}, torch.optim.AdamW),
    ("adamw", {"weight_decay": 0.3}, torch.optim.AdamW),
    ("sgd", {}, torch.optim.SGD),
    ("sgd", {"momentum": 0.9, "weight_decay": 0.1}, torch.optim.SGD),
    ("sgd", {"momentum": 0.9, "nesterov": True}, torch.optim.SGD),
]
OTHERS = [
    ("RAdam", {}, torch.optim.RAdam),
    ("rmsprop", {"momentum": 0.5}, torch.optim.RMSprop),
    ("Adagrad", {}, torch.optim.Adagrad),
]


def three_replicas() -> Replicas:
    torch.manual_seed(0)
    modules = [nn.Linear(3, 2, dtype=torch.float64) for _ in RATES]
    return Replicas(modules, torch.device("cpu"))


def gradients(steps: int) -> torch.Tensor:
    return torch.randn(steps, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("rates", [RATES, [1e-2] * 3])
@pytest.mark.parametrize(("name", "arguments", "reference"), OWN + OTHERS)
def test_every_step_is_torch_s(name, arguments, reference, rates):
    replicas = three_replicas()
    parameters = [nn.Parameter(row.clone()) for row in replicas.flat]
    theirs = [reference([p], lr=r, **arguments) for p, r in zip(parameters, rates, strict=True)]
    ours = make_optimizer(replicas, name, arguments)
    alive = torch.ones(3, dtype=torch.bool)
    for step, grad in enumerate(gradients(20), start=1):
        ours.update(Update(grad, torch.tensor(rates, dtype=torch.float64), alive, step))
        for parameter, optimizer, row in zip(parameters, theirs, grad, strict=True):
            parameter.grad = row.clone()
            optimizer.step()
        expected = torch.stack([p.detach() for p in parameters])
        torch.testing.assert_close(replicas.flat, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.skipif(not adam.HAS_FUSED_ADAM, reason="this torch has no fused Adam")
@pytest.mark.parametrize("rates", [RATES, [1e-2] * 3, [1e-2, 1e-2, 3e-2]])
@pytest.mark.parametrize("alive", [[True] * 3, [True, False, True], [False, True, True]])
@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, a, _ in OWN if n != "sgd"])
def test_one_pass_over_memory_is_the_same(name, arguments, alive, rates, monkeypatch):
    """In runs of living replicas of one rate, with gradients that lie in memory in any way."""
    dense = gradients(5)
    kinds = {
        "dense": dense,
        "strided": torch.stack([dense, dense + 1], dim=-1)[..., 0],
        "repeated": dense[..., :1].expand_as(dense),
    }
    by = {"rate": torch.tensor(rates, dtype=torch.float64), "alive": torch.tensor(alive)}
    for grads in kinds.values():
        parameters = []
        for worth in (0, 10**9):
            monkeypatch.setattr(adam, "WORTH_FUSING", worth)
            monkeypatch.setattr(adam, "HAS_FUSED_ADAM", worth == 0)
            replicas = three_replicas()
            ours = make_optimizer(replicas, name, arguments)
            for step, grad in enumerate(grads, start=1):
                ours.update(Update(grad=grad, step=step, **by))
            parameters.append(replicas.flat)
        torch.testing.assert_close(*parameters, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rates", [RATES, [1e-2] * 3])
@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, a, _ in OWN + OTHERS])
def test_a_replica_that_is_not_alive_keeps_its_parameters(name, arguments, rates):
    replicas = three_replicas()
    optimizer = make_optimizer(replicas, name, arguments)
    before = replicas.flat.clone()
    alive = torch.tensor([True, False, True])
    grad = gradients(1)[0]
    grad[1] = float("nan")
    optimizer.update(Update(grad, torch.tensor(rates, dtype=torch.float64), alive, 1))
    assert torch.equal(replicas.flat[1], before[1])
    assert not torch.equal(replicas.flat[[0, 2]], before[[0, 2]])
    assert torch.isfinite(replicas.flat).all()


@pytest.mark.parametrize(("name", "arguments"), [(n, a) for n, a, _ in OWN + OTHERS])
def test_a_loaded_state_continues_to_the_same_bits(name, arguments):
    rate, alive = torch.tensor(RATES, dtype=torch.float64), torch.ones(3, dtype=torch.bool)
    straight, broken = three_replicas(), three_replicas()
    first, second = (make_optimizer(r, name, arguments) for r in (straight, broken))
    for step, grad in enumerate(gradients(6), start=1):
        first.update(Update(grad.clone(), rate, alive, step))
        second.update(Update(grad.clone(), rate, alive, step))
        if step == 3:
            tensors, values = second.state()
            tensors = {n: t.clone() for n, t in tensors.items()}
            second = make_optimizer(broken, name, arguments)
            second.load(tensors, values)
    assert torch.equal(straight.flat, broken.flat)
