"""Replicas computed by a module with a leading dimension."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toys import CPU, TakingReplicas, context, loss, stacked

from iclbench.training.gradients.leading import Leading
from iclbench.training.gradients.plain import Plain
from iclbench.training.replicas import Replicas


@pytest.mark.parametrize("group", [1, 2, 3])
def test_losses_and_gradients_match_plain(group):
    _, replicas, batch = stacked(TakingReplicas)
    expected = Plain(replicas, loss)(batch)
    torch.testing.assert_close(Leading(replicas, loss, context(), group)(batch), expected)


def test_frozen_parameters_are_not_trained():
    modules, whole, batch = stacked(TakingReplicas)
    for module in modules:
        module.b = nn.Parameter(torch.randn(1))
    part = Replicas(modules, CPU, freeze=("b",))
    results = [Leading(replicas, loss, context(), 3)(batch) for replicas in (whole, part)]
    torch.testing.assert_close(*results)
