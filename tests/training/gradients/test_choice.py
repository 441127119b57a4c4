"""The fastest program that agrees with plain is chosen, with reasons why others are not."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from toys import (
    Averaging,
    Dropping,
    Lying,
    MixingReplicas,
    Small,
    TakingReplicas,
    Updating,
    context,
    loss,
    stacked,
)
from trainings import finished, new_training

from iclbench import Batch, Sequence, UsageError
from iclbench.training.gradients import capacity, choice
from iclbench.training.gradients.choice import Chooser
from iclbench.training.gradients.plain import Plain
from iclbench.training.random_streams import first_states


def choose(cls, engine="auto", count=3):
    _, replicas, batch = stacked(cls, count)
    if cls is Dropping:
        replicas.random_states = first_states(range(count), torch.device("cpu"))
    chosen = Chooser(replicas, loss, batch, context()).choose(engine)
    expected = Plain(replicas, loss)(batch)
    if cls is not Dropping:
        torch.testing.assert_close(chosen.program(batch), expected)
    return chosen


@pytest.mark.parametrize(
    ("cls", "count", "name"),
    [(Small, 3, "vmapped"), (Small, 1, "threaded"), (TakingReplicas, 3, "leading")],
)
def test_without_a_problem_no_reason_is_given(cls, count, name):
    chosen = choose(cls, count=count)
    assert (chosen.program.name, chosen.reasons) == (name, [])


@pytest.mark.parametrize("engine", ["plain", "vmapped", "threaded"])
@pytest.mark.parametrize("cls", [Small, TakingReplicas])
def test_requested_program_is_chosen(cls, engine):
    chosen = choose(cls, engine)
    assert (chosen.program.name, chosen.reasons) == (engine, [])


@pytest.mark.parametrize(
    ("cls", "engine", "name", "reason"),
    [
        (Lying, "auto", "threaded", "not vmapped: losses differ"),
        (Lying, "vmapped", "threaded", "not vmapped: losses differ"),
        (MixingReplicas, "auto", "vmapped", "not leading: losses differ"),
        (Averaging, "threaded", "plain", "not threaded: ReplacedError: a forward pass replaced"),
        (Dropping, "auto", "plain", "one after another: it draws random numbers"),
        (Dropping, "vmapped", "plain", "not vmapped: it draws random numbers"),
    ],
)
def test_rejected_program_has_a_reason(cls, engine, name, reason):
    chosen = choose(cls, engine)
    assert chosen.program.name == name
    assert reason in chosen.reasons[0]


def test_trial_of_a_program_leaves_the_buffers_unchanged():
    _, replicas, batch = stacked(Updating)
    Chooser(replicas, loss, batch, context()).choose("auto").program(batch)
    assert replicas.frozen_and_buffers["seen"].tolist() == [1.0, 1.0, 1.0]


class Coupled(nn.Module):
    """Makes every prediction depend on the mean over the batch."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 1)

    def forward(self, prompt):
        out = self.map(prompt.tokens)
        return out * (1 + out.mean())


def test_model_that_couples_prompts_is_not_sliced(monkeypatch):
    monkeypatch.setattr(capacity, "SLICE_ELEMENTS", 10)
    chosen = choose(Coupled, "threaded")
    assert chosen.how.slices == 1
    assert "differ" in chosen.reasons[0]


def test_unknown_engine_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'graph'"):
        new_training(engine="grahp")


def test_model_whose_for_training_fails_is_trained_by_plain():
    class Broken(Small):
        def for_training(self, context):
            raise ZeroDivisionError("no form")

    chosen = choose(Broken)
    assert chosen.program.name == "plain"
    assert "not threaded: ZeroDivisionError: no form" in chosen.reasons


def test_the_record_names_the_program():
    assert finished(new_training(3)).engine == "vmapped"
    assert finished(new_training(3, engine="plain")).engine == "plain"


def test_groups_that_do_not_fit_on_a_device_are_reduced(monkeypatch):
    monkeypatch.setattr(Chooser, "_on_cpu", False)
    monkeypatch.setattr(choice, "fitting_group_size", lambda count, make, batch: 2)
    chosen = choose(Small)
    assert (chosen.program.name, chosen.how.group_size) == ("vmapped", 2)


def test_programs_are_compared_on_the_training_batch_size():
    """A program may treat large inputs differently."""

    class Large(Small):
        def forward(self, prompt):
            large = prompt.tokens.shape[0] > 8
            lies = large and torch._C._functorch.is_batchedtensor(self.a.weight)
            return super().forward(prompt) * (1.1 if lies else 1.0)

    _, replicas, _ = stacked(Large)
    batch = Batch(Sequence(torch.randn(3, 9, 7, 4)), torch.randn(3, 9, 7, 1))
    chosen = Chooser(replicas, loss, batch, context()).choose("auto")
    assert chosen.program.name == "threaded"
