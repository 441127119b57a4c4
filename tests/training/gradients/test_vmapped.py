"""Vmapped replicas match `plain`."""

from __future__ import annotations

import pytest
import torch
from test_binding import Fast
from toys import Counting, SinglePrecision, Small, Tied, context, loss, stacked
from trainings import AGREE, finished, losses_differ_by, new_training

from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.vmapped import Vmapped


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("cls", [Small, Tied, Counting, SinglePrecision, Fast])
def test_losses_and_gradients_match_plain(cls, group):
    _, replicas, batch = stacked(cls)
    expected = Plain(replicas.copy(), loss)(batch)
    torch.testing.assert_close(Vmapped(replicas, loss, context(), group)(batch), expected)


def test_updated_buffers_are_kept():
    _, replicas, batch = stacked(Counting)
    expected = replicas.copy()
    Plain(expected, loss)(batch)
    Vmapped(replicas, loss, context(), 3)(batch)
    for name, value in replicas.frozen_and_buffers.items():
        torch.testing.assert_close(value, expected.frozen_and_buffers[name])


@pytest.mark.parametrize("model", ["transformer", "baseconv"])
def test_training_matches_plain(model):
    training = new_training(model=model, engine="vmapped")
    assert training.engine == "vmapped"
    assert losses_differ_by(training, new_training(model=model, engine="plain")) < AGREE


def test_one_replica_can_be_vmapped():
    assert finished(new_training(1, engine="vmapped")).engine == "vmapped"


def test_groups_give_the_same_losses():
    grouped, whole = new_training(engine="vmapped"), new_training(engine="vmapped")
    grouped.program = Vmapped(grouped.replicas, grouped.task.loss, context(), 2)
    assert losses_differ_by(grouped, whole) < AGREE
