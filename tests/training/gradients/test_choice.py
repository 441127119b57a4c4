"""The fastest program that agrees is chosen, and it is said why another is not."""

from __future__ import annotations

import gc
import weakref

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
from trainings import finished, training

from iclbench import Batch, Sequence, UsageError
from iclbench.training.gradients import capacity, choice
from iclbench.training.gradients.choice import Chooser
from iclbench.training.gradients.plain import Plain
from iclbench.training.random_streams import first_states


def choose(cls, engine="auto", count=3):
    _, replicas, batch = stacked(cls, count)
    if cls is Dropping:
        replicas.random_states = first_states(range(count), torch.device("cpu"))
    decision = Chooser(replicas, loss, batch, context()).choose(engine)
    expected = Plain(replicas.copy(), loss)(batch)
    if cls is not Dropping:
        torch.testing.assert_close(decision.program(batch), expected)
    return decision


@pytest.mark.parametrize(
    ("cls", "count", "name"),
    [(Small, 3, "vmapped"), (Small, 1, "threaded"), (TakingReplicas, 3, "leading")],
)
def test_without_a_problem_nothing_is_said(cls, count, name):
    decision = choose(cls, count=count)
    assert (decision.program.name, decision.reasons) == (name, [])


@pytest.mark.parametrize("engine", ["plain", "vmapped", "threaded"])
@pytest.mark.parametrize("cls", [Small, TakingReplicas])
def test_a_program_that_is_asked_for_is_taken(cls, engine):
    decision = choose(cls, engine)
    assert (decision.program.name, decision.reasons) == (engine, [])


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
def test_what_is_not_taken_has_a_reason(cls, engine, name, reason):
    decision = choose(cls, engine)
    assert decision.program.name == name
    assert reason in decision.reasons[0]
    # Seeds that could have been one program cost their own time each.
    alone = name == "threaded" and reason.startswith("not vmapped")
    assert ("replicas are trained one after another" in decision.reasons) == alone


def test_the_trial_of_a_program_leaves_the_buffers():
    _, replicas, batch = stacked(Updating)
    Chooser(replicas, loss, batch, context()).choose("auto").program(batch)
    assert replicas.frozen_and_buffers["seen"].tolist() == [1.0, 1.0, 1.0]


class Coupled(nn.Module):
    """Every prediction depends on the mean over the batch."""

    def __init__(self):
        super().__init__()
        self.map = nn.Linear(4, 1)

    def forward(self, prompt):
        out = self.map(prompt.tokens)
        return out * (1 + out.mean())


def test_a_model_that_looks_at_the_batch_is_not_sliced(monkeypatch):
    monkeypatch.setattr(capacity, "SLICE_ELEMENTS", 10)
    decision = choose(Coupled, "threaded")
    assert decision.how.slices == 1
    assert "differ" in decision.reasons[0]


def test_an_unknown_engine_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'graph'"):
        training(engine="grahp")


def test_a_model_that_fails_when_asked_for_its_form_is_trained_by_plain():
    class Broken(Small):
        def for_training(self, context):
            raise ZeroDivisionError("no form")

    decision = choose(Broken)
    assert decision.program.name == "plain"
    assert "not threaded: ZeroDivisionError: no form" in decision.reasons


def test_a_form_for_one_replica_that_fails_leaves_the_form_for_several():
    class Broken(Small):
        def for_training(self, context):
            if context.replicas == "alone":
                raise ZeroDivisionError("no form")
            return None if context.replicas == "leading" else self

    decision = choose(Broken)
    assert (decision.program.name, decision.speedup, decision.reasons) == ("vmapped", None, [])


def test_the_record_names_the_program():
    assert finished(training(3)).engine == "vmapped"
    assert finished(training(3, engine="plain")).engine == "plain"


def test_groups_that_do_not_fit_on_a_device_are_made_smaller(monkeypatch):
    monkeypatch.setattr(Chooser, "_on_cpu", False)
    monkeypatch.setattr(choice, "fitting_group_size", lambda count, make, batch: 2)
    decision = choose(Small)
    assert (decision.program.name, decision.how.group_size) == ("vmapped", 2)


def test_replicas_are_trained_one_by_one_where_no_group_fits(monkeypatch):
    def refused(count, make, batch):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Chooser, "_on_cpu", False)
    monkeypatch.setattr(choice, "fitting_group_size", refused)
    decision = choose(Small)
    assert (decision.program.name, decision.how.group_size) == ("threaded", 1)
    assert decision.reasons == ["trained one after another: only one replica fits in memory"]


@pytest.mark.parametrize(("fits", "name", "size"), [(3, "vmapped", 3), (1, "threaded", 1)])
def test_groups_that_do_not_fit_beside_what_they_are_compared_with_are_halved(fits, name, size):
    class Hungry(Small):
        def forward(self, prompt):
            a = self.a.weight
            if torch._C._functorch.is_batchedtensor(a):
                replicas = torch._C._functorch.get_unwrapped(a).shape[0]
                if replicas > fits:
                    raise torch.OutOfMemoryError("CUDA out of memory")
            return super().forward(prompt)

    decision = choose(Hungry, count=6)
    assert (decision.program.name, decision.how.group_size) == (name, size)
    reason = "not vmapped: OutOfMemoryError: CUDA out of memory"
    alone = "replicas are trained one after another"
    assert decision.reasons == ([] if fits > 1 else [reason, alone])


def test_a_choice_keeps_nothing_that_it_was_made_with():
    """Its batch and its reference may hold gigabytes of a GPU."""
    _, replicas, batch = stacked(Small)
    chooser = Chooser(replicas, loss, batch, context())
    kept = weakref.ref(chooser)
    decision = chooser.choose("auto")
    del chooser
    gc.collect()
    assert kept() is None
    assert (decision.program.name, decision.how.group_size) == ("vmapped", 3)


def test_a_reference_that_does_not_fit_in_memory_is_no_agreement():
    class Hungry(Small):
        def forward(self, prompt):
            if self.a.weight.dtype == torch.float64:
                raise RuntimeError("CUDA error: out of memory")
            return super().forward(prompt)

    decision = choose(Hungry)
    assert decision.program.name == "plain"
    assert "out of memory" in decision.reasons[0]


def test_the_batch_is_compared_as_it_is_trained_on():
    """A program may compute large inputs in another way."""

    class Large(Small):
        def forward(self, prompt):
            large = prompt.tokens.shape[0] > 8
            lies = large and torch._C._functorch.is_batchedtensor(self.a.weight)
            return super().forward(prompt) * (1.1 if lies else 1.0)

    _, replicas, _ = stacked(Large)
    batch = Batch(Sequence(torch.randn(3, 9, 7, 4)), torch.randn(3, 9, 7, 1))
    decision = Chooser(replicas, loss, batch, context()).choose("auto")
    assert decision.program.name == "threaded"
