"""A batch's loss as a function of one replica's parameters."""

from __future__ import annotations

import pytest
import torch
from toys import Small, loss, single, stacked

from iclbench.training.gradients.program import replicas_of
from iclbench.training.objective import Objective


@pytest.mark.parametrize("slices", [1, 2, 5])
def test_slices_give_the_loss_and_gradient_of_the_batch(slices):
    _, replicas, batch = stacked(Small)
    objective = Objective(replicas, batch, loss, slices)
    row = replicas.flat[2]
    torch.testing.assert_close(objective.gradient(2, row), single(replicas, 2, batch))
    expected = objective.mean_loss(2, row, replicas_of(objective.batch, 2))
    torch.testing.assert_close(objective.gradient(2, row)[0], expected)


def test_gradient_is_taken_at_the_given_parameters():
    _, replicas, batch = stacked(Small)
    parameters = replicas.flat.clone()
    objective = Objective(replicas, batch, loss)
    moved = objective.gradient(0, replicas.flat[0] + 0.1)
    assert torch.equal(replicas.flat, parameters)
    replicas.flat += 0.1
    torch.testing.assert_close(moved, objective.gradient(0, replicas.flat[0]))
