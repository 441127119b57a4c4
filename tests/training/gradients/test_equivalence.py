"""Programs that differ from `plain` are detected, unless they differ only by rounding."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from toys import (
    Branching,
    Counting,
    Exploding,
    Lying,
    LyingALittle,
    LyingLater,
    MixingReplicas,
    Recurrent,
    SinglePrecision,
    Small,
    TakingReplicas,
    Tied,
    context,
    loss,
    stacked,
)

from iclbench import Batch, Sequence
from iclbench.training.gradients.equivalence import Reference
from iclbench.training.gradients.leading import Leading
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.gradients.vmapped import Vmapped

VMAPPED = partial(Vmapped, loss=loss, context=context(), group_size=3)
LEADING = partial(Leading, loss=loss, context=context(), group_size=3)
THREADED = partial(Threaded, loss=loss, context=context())


@pytest.mark.parametrize("cls", [Small, Tied, Counting, SinglePrecision, Exploding])
@pytest.mark.parametrize("make", [VMAPPED, THREADED], ids=["vmapped", "threaded"])
def test_programs_agree(cls, make):
    """Models that overflow at perturbed parameters are compared at their own."""
    _, replicas, batch = stacked(cls)
    assert Reference(replicas, batch, loss).find_mismatch(make) is None


def test_module_for_leading_replicas_agrees():
    _, replicas, batch = stacked(TakingReplicas)
    assert Reference(replicas, batch, loss).find_mismatch(LEADING) is None


@pytest.mark.parametrize(
    ("cls", "make", "reason"),
    [
        (Branching, VMAPPED, "RuntimeError: vmap: It looks like"),
        (Recurrent, VMAPPED, "Error: "),
        (Lying, VMAPPED, "losses differ from plain's by"),
        (LyingALittle, VMAPPED, "gradients of small differ from plain's"),
        (LyingLater, VMAPPED, "losses differ"),
        (MixingReplicas, LEADING, "losses differ"),
    ],
)
def test_mismatch_is_reported_in_one_line(cls, make, reason):
    _, replicas, batch = stacked(cls)
    mismatch = Reference(replicas, batch, loss).find_mismatch(make)
    assert reason in mismatch
    assert len(mismatch.splitlines()) == 1


class LyingOnLargeInputs(Small):
    """Its training form differs on more than 8 prompts."""

    def for_training(self, context):
        return self if context.replicas != "leading" else None

    def forward(self, prompt):
        large = prompt.tokens.shape[0] > 8 and torch._C._functorch.is_batchedtensor(self.a.weight)
        return super().forward(prompt) * (1.1 if large else 1)


def test_whole_batch_is_compared():
    _, replicas, _ = stacked(LyingOnLargeInputs)
    batch = Batch(Sequence(torch.randn(3, 9, 7, 4)), torch.randn(3, 9, 7, 1))
    assert "differ" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


class SingleLie(Small):
    def forward(self, prompt):
        lies = prompt.tokens.dtype == torch.float32
        lies = lies and torch._C._functorch.is_batchedtensor(self.a.weight)
        return super().forward(prompt) * (1.1 if lies else 1)


def test_programs_are_compared_in_the_run_s_dtype():
    _, replicas, batch = stacked(SingleLie)
    assert "differ" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


def test_rounding_is_tolerated_where_the_model_is_exact():
    """The relative difference of losses of 1e-15 is large."""
    modules, replicas, batch = stacked(Small)
    with torch.no_grad():
        exact = torch.stack(
            [m(Sequence(t)) for m, t in zip(modules, batch.prompt.tokens, strict=True)]
        )
        noise = 1e-8 * torch.randn_like(exact)
    reference = Reference(replicas, Batch(batch.prompt, exact + noise), loss)
    assert reference.whole[0].max() < 1e-10
    assert reference.find_mismatch(VMAPPED) is None
    scaled = partial(VMAPPED, loss=lambda a, b: loss(1.001 * a, b))
    assert "differ" in reference.find_mismatch(scaled)


def test_factored_logits_are_compared_in_parts():
    sizes = []

    def watching(prediction, target):
        sizes.append(len(prediction))
        return loss(prediction, target)

    _, replicas, _ = stacked(Small)
    batch = Batch(Sequence(torch.randn(3, 24, 7, 4)), torch.randn(3, 24, 7, 1))
    reference = Reference(replicas, batch, watching, factored_logits=True)
    assert max(sizes) == 8
    assert reference.find_mismatch(VMAPPED) is None


def test_comparison_changes_no_state():
    _, replicas, batch = stacked(Counting)
    expected = {name: value.clone() for name, value in replicas.state().items()}
    generator = torch.get_rng_state()
    reference = Reference(replicas, batch, loss)
    for make in (VMAPPED, THREADED):
        reference.find_mismatch(make)
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, expected[name]) for name, value in replicas.state().items())
