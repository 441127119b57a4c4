"""The loss of several predictions is their mean, and optimizers that need one refuse them."""

from __future__ import annotations

import pytest
import torch
from random_tensors import randn
from torch import nn

from iclbench import Batch, Sequence, SeveralPredictions, UsageError
from iclbench.nn.predictions import averaged
from iclbench.training.gradients.program import replicas_of
from iclbench.training.objective import Objective
from iclbench.training.replicas import Replicas


def squared(prediction, target):
    return (prediction - target).square().mean(dim=(1, 2))


def test_the_loss_is_the_mean_over_predictions():
    first, second, target = (randn(seed, 5, 2, 3) for seed in range(3))
    loss = averaged(squared)
    expected = (squared(first, target) + squared(second, target)) / 2
    torch.testing.assert_close(loss(SeveralPredictions((first, second)), target), expected)
    assert torch.equal(loss(first, target), squared(first, target))


class Twice(nn.Module):
    """Predicts once, and in training twice."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5).double())

    def forward(self, prompt):
        first = self.scale * prompt.tokens
        return SeveralPredictions((first, self.scale * first)) if self.training else first


def test_optimizers_by_the_loss_take_several_and_by_predictions_refuse_them():
    batch = Batch(Sequence(randn(0, 1, 5, 2, 3)), randn(1, 1, 5, 2, 3))
    replicas = Replicas([Twice()], torch.device("cpu"))
    objective = Objective(replicas, batch, averaged(squared))
    loss, gradient = objective.gradient(0, replicas.flat[0])
    tokens, target = batch.prompt.tokens[0], batch.target[0]
    scale = torch.tensor(0.5).double().requires_grad_()
    losses = [squared(scale**power * tokens, target).mean() for power in (1, 2)]
    expected = sum(losses) / 2
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, scale)[0].reshape(1))
    with pytest.raises(UsageError, match="needs one prediction per prompt; the model has several"):
        objective.prediction(0, replicas.flat[0], replicas_of(objective.batch, 0).prompt)
