"""Vmapped replicas compute what `plain` computes."""

from __future__ import annotations

import pytest
import torch
from test_binding import Fast
from toys import Counting, SinglePrecision, Small, Tied, context, loss, stacked
from trainings import AGREE, finished, losses_differ_by, training

from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.vmapped import Vmapped


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("cls", [Small, Tied, Counting, SinglePrecision, Fast])
def test_losses_and_gradients_are_plain_s(cls, group):
    _, replicas, batch = stacked(cls)
    expected = Plain(replicas.copy(), loss)(batch)
    torch.testing.assert_close(Vmapped(replicas, loss, context(), group)(batch), expected)


def test_buffers_that_a_module_updates_are_kept():
    _, replicas, batch = stacked(Counting)
    expected = replicas.copy()
    Plain(expected, loss)(batch)
    Vmapped(replicas, loss, context(), 3)(batch)
    for name, value in replicas.frozen_and_buffers.items():
        torch.testing.assert_close(value, expected.frozen_and_buffers[name])


def test_one_replica_may_be_vmapped():
    assert finished(training(1, engine="vmapped")).engine == "vmapped"


def test_groups_give_the_same_losses():
    grouped, whole = training(engine="vmapped"), training(engine="vmapped")
    grouped.program = Vmapped(grouped.replicas, grouped.task.loss, context(), 2)
    assert losses_differ_by(grouped, whole) < AGREE
