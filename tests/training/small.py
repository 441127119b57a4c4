"""Trainings of a two-layer network on least squares, for the tests of the loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from iclbench import Recipe
from iclbench.training.loop import Training
from iclbench.training.state import Replica
from iclbench_least_squares.fixed import FixedConfig, LeastSquares

TASK = LeastSquares(FixedConfig(dim=2, examples=4))
CPU = torch.device("cpu")


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(15, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, prompt) -> Tensor:
        return self.net(prompt.tokens.flatten(1)).unsqueeze(1)


class Noisy(Small):
    def forward(self, prompt) -> Tensor:
        return nn.functional.dropout(super().forward(prompt), 0.2, self.training)


def new_training(seeds, dtype=torch.float64, cls=Small, rates=None, **recipe):
    modules = []
    for seed in seeds:
        torch.manual_seed(seed)
        modules.append(cls().to(dtype))
    values = {"steps": 30, "batch": 8, "chunk": 5, **recipe}
    rates = rates or [1e-2] * len(seeds)
    members = [Replica(s, r) for s, r in zip(seeds, rates, strict=True)]
    return Training(modules, members, TASK, Recipe(**values), device=CPU, dtype=dtype)


def trained(*args, resumption=None, observer=lambda step, loss: None, **kwargs):
    return new_training(*args, **kwargs).run(resumption, observer)


ADAPTIVE = {
    "schedule": "adaptive",
    "decay_every": 6,
    "measure_every": 4,
    "measure_batches": 3,
    "gradient_memory": 0.9,
    "chunk": 1,
}


class CutError(Exception):
    """Simulates a killed process."""


def same(a, b) -> bool:
    return all(
        torch.equal(x[name], y[name]) for x, y in zip(a.states, b.states, strict=True) for name in x
    )
