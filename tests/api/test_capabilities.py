"""A capability is offered with all its members and the right arguments, or not at all."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import (
    Decodes,
    ExtendsPositions,
    PluginError,
    ShowsIterates,
    ShowsStates,
    TrainsFaster,
    offers,
)
from iclbench.api.capabilities import CAPABILITIES, TrainingContext


class Whole(nn.Module):
    extends = True

    def extend(self, x, cache):
        return x, cache

    def decoder(self):
        return None

    def hidden(self, real, ids):
        return real

    @property
    def iterates(self):
        return 2

    def trajectory(self, prompt):
        return prompt

    def state_sizes(self, length):
        return (length,)

    def for_training(self, context, *, more=0):
        return self


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_capability_is_offered_by_all_its_members(capability):
    assert offers(Whole(), capability)
    assert not offers(nn.Linear(2, 2), capability)


def test_torch_s_own_extend_does_not_count():
    for module in (nn.Sequential(nn.Linear(2, 2)), nn.ModuleList()):
        assert not offers(module, ExtendsPositions)


@pytest.mark.parametrize(
    ("members", "capability", "message"),
    [
        ({"extend": Whole.extend}, ExtendsPositions, "Half offers `extend` but not `extends`"),
        ({"extends": True}, ExtendsPositions, "Half offers `extends` but not `extend`"),
        ({"iterates": 3}, ShowsIterates, "`iterates` but not `trajectory`"),
        ({"hidden": lambda self, x: x}, ShowsStates, r"`hidden` does not take \(real, ids\)"),
        ({"decoder": 3}, Decodes, "`decoder` is not a method"),
        ({"for_training": lambda self: self}, TrainsFaster, r"does not take \(context\)"),
        (
            {"iterates": lambda self: 3, "trajectory": Whole.trajectory},
            ShowsIterates,
            "`iterates` is a method, not a value",
        ),
    ],
)
def test_incomplete_or_mismatched_capability_is_refused(members, capability, message):
    module = type("Half", (nn.Module,), members)()
    with pytest.raises(PluginError, match=message):
        offers(module, capability)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"replicas": "leading"}, True),
        ({"replicas": "vmapped"}, False),
        ({"compiled": True}, False),
    ],
)
def test_vmap_and_the_compiler_do_not_take_any_operator(options, expected):
    context = TrainingContext(torch.device("cpu"), torch.float32, 4, **options)
    assert context.takes_any_operator is expected


@pytest.mark.parametrize(
    ("name", "capability"),
    [("hidden", ShowsStates), ("decoder", Decodes), ("extend", ExtendsPositions)],
)
def test_a_layer_of_that_name_offers_nothing(name, capability):
    module = nn.Module()
    module.add_module(name, nn.Linear(2, 2))
    assert not offers(module, capability)
