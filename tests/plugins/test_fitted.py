"""The network that is fitted to each context, against torch's own layers and optimizer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import load_task
from iclbench_solvers.fitted import NetworkConfig, TwoLayerNetwork, _initial
from iclbench_solvers.solver import Examples

SOLVER = TwoLayerNetwork()


def examples(contexts=3, count=6):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(contexts, count, 4, generator=generator, dtype=torch.float64)
    y = torch.randn(contexts, count, 2, generator=generator, dtype=torch.float64)
    return Examples(x, y), torch.randn(contexts, 5, 4, generator=generator, dtype=torch.float64)


def test_each_context_is_trained_as_torch_would_train_it_alone():
    config = NetworkConfig(hidden=7, steps=12)
    given, query = examples()
    answers = SOLVER.answer(given, query, config)
    for row in range(3):
        first, first_bias, second, second_bias = (
            weight[row].detach() for weight in _initial(given.x, 2, config)
        )
        network = nn.Sequential(nn.Linear(4, 7), nn.ReLU(), nn.Linear(7, 2)).double()
        with torch.no_grad():
            for parameter, value in zip(
                network.parameters(), (first.mT, first_bias[0], second.mT, second_bias[0]),
                strict=True,
            ):  # fmt: skip
                parameter.copy_(value)
        optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
        for _ in range(12):
            optimizer.zero_grad()
            nn.functional.mse_loss(network(given.x[row]), given.y[row]).backward()
            optimizer.step()
        torch.testing.assert_close(answers[row], network(query[row]).detach())


def test_it_fits_the_examples_and_works_where_gradients_are_off():
    given, _ = examples()
    with torch.no_grad():
        before = SOLVER.answer(given, given.x, NetworkConfig(steps=0))
        after = SOLVER.answer(given, given.x, NetworkConfig(steps=300))
    assert not after.requires_grad
    assert (after - given.y).square().mean() < 0.1 * (before - given.y).square().mean()


def test_it_answers_every_prefix_and_0_without_examples():
    task = load_task("relu-network", dim=3, examples=4, hidden=5)
    (batch,) = task.evaluation_batches(6, 0, torch.float32)
    prediction = SOLVER.build(task.signature, NetworkConfig(steps=5))(batch.prompt)
    assert prediction.shape == (6, 5, 1)
    assert (prediction[:, 0] == 0).all()
    few = SOLVER.build(task.signature, NetworkConfig(steps=5))(
        type(batch.prompt)(*(field[:2] for field in batch.prompt))
    )
    assert few == pytest.approx(prediction[:2], rel=1e-4, abs=1e-5)
