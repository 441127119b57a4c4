"""What differs from `plain` is noticed, and what differs in rounding alone is not."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor
from toys import (
    Averaging,
    Branching,
    Clamping,
    Counting,
    Exploding,
    Forgetful,
    Lying,
    LyingALittle,
    LyingLater,
    MixingReplicas,
    Overflowing,
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
from iclbench.training.gradients import capacity, equivalence
from iclbench.training.gradients.equivalence import Reference
from iclbench.training.gradients.leading import Leading
from iclbench.training.gradients.plain import Plain
from iclbench.training.gradients.threaded import Threaded
from iclbench.training.gradients.vmapped import Vmapped
from iclbench.training.replicas import Replicas

VMAPPED = partial(Vmapped, loss=loss, context=context(), group_size=3)
LEADING = partial(Leading, loss=loss, context=context(), group_size=3)
THREADED = partial(Threaded, loss=loss, context=context())


class Remembering(Small):
    """Keeps an activation of its last forward pass, as many do to look at it later."""

    def forward(self, prompt: Sequence) -> Tensor:
        self.hidden = torch.tanh(self.a(prompt.tokens))
        return self.scale * self.b(self.hidden)


class Masked(Small):
    """Has a buffer of infinities, as causal masks are."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((4, 4), -torch.inf).triu(1))


CLASSES = [Small, Tied, Counting, SinglePrecision, Exploding, Masked, Remembering]


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("make", [VMAPPED, THREADED], ids=["vmapped", "threaded"])
def test_programs_agree(cls, make):
    """Models that overflow when moved are compared where they are."""
    _, replicas, batch = stacked(cls)
    assert Reference(replicas, batch, loss).find_mismatch(make) is None


def test_a_module_that_takes_replicas_agrees():
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
def test_a_mismatch_is_a_line(cls, make, reason):
    _, replicas, batch = stacked(cls)
    mismatch = Reference(replicas, batch, loss).find_mismatch(make)
    assert reason in mismatch
    assert len(mismatch.splitlines()) == 1


class LyingOnLargeInputs(Small):
    """Its form for training differs from it on more than 8 prompts."""

    def for_training(self, context):
        return self if context.replicas != "leading" else None

    def forward(self, prompt):
        large = prompt.tokens.shape[0] > 8 and torch._C._functorch.is_batchedtensor(self.a.weight)
        return super().forward(prompt) * (1.1 if large else 1)


def test_the_whole_batch_is_compared():
    _, replicas, _ = stacked(LyingOnLargeInputs)
    batch = Batch(Sequence(torch.randn(3, 9, 7, 4)), torch.randn(3, 9, 7, 1))
    assert "differ" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


class SingleLie(Small):
    def forward(self, prompt):
        lies = prompt.tokens.dtype == torch.float32
        lies = lies and torch._C._functorch.is_batchedtensor(self.a.weight)
        return super().forward(prompt) * (1.1 if lies else 1)


def test_the_dtype_of_the_run_is_compared():
    _, replicas, batch = stacked(SingleLie)
    assert "differ" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


class Kinked(torch.nn.Module):
    """(1 + v)x − c behind a ReLU, in another order of operations where it is vmapped."""

    def __init__(self):
        super().__init__()
        self.v = torch.nn.Parameter(torch.tensor(2.0**-12))

    def forward(self, prompt):
        x, c = prompt.tokens[..., :1], 1 + 2.0**-11
        if torch._C._functorch.is_batchedtensor(self.v):
            return torch.relu((1 + self.v) * x - c)
        return torch.relu((x - c) + self.v * x)


def test_rounding_at_a_kink_is_no_mismatch():
    """At x = 1 + 2⁻¹² the program has 0 in float32, and `plain` 2⁻²⁴ as both have in float64."""
    _, replicas, _ = stacked(Kinked)
    tokens = torch.full((3, 5, 7, 4), 1 + 2.0**-12)
    reference = Reference(replicas, Batch(Sequence(tokens), torch.ones(3, 5, 7, 1)), loss)
    results = VMAPPED(replicas)(reference.batch)
    assert (results[1] == 0).all()
    assert (reference.whole.gradients != 0).all()
    assert reference.find_mismatch(VMAPPED) is None


class SpoiltAtStart(Small):
    """Its form for vmap is not finite in float32 where a bias is 0, as all are at the start."""

    def forward(self, prompt):
        out = super().forward(prompt)
        if prompt.tokens.dtype == torch.float32 and torch._C._functorch.is_batchedtensor(out):
            out = out * torch.where((self.a.bias == 0).any(), torch.nan, 1.0)
        return out


def test_what_is_not_finite_is_a_mismatch_though_it_is_finite_nearby():
    modules, _, batch = stacked(SpoiltAtStart)
    for module in modules:
        torch.nn.init.zeros_(module.a.bias)
    replicas = Replicas(modules, torch.device("cpu"))
    assert "differ" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


def test_where_the_model_is_exact_a_program_may_differ_in_rounding():
    """Losses of 1e-15 differ by more than any share of them."""
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


def test_plain_takes_no_more_prompts_than_its_forward_pass_may_write(monkeypatch):
    """Of two replicas at least, in parts; programs take the whole batch."""
    _, replicas, _ = stacked(Small, 4)
    batch = Batch(Sequence(torch.randn(4, 24, 7, 4)), torch.randn(4, 24, 7, 1))
    elements = capacity.COMPARED_ELEMENTS // capacity.prompts_at_once(replicas, loss, batch)
    for module in (capacity, equivalence):
        monkeypatch.setattr(module, "COMPARED_ELEMENTS", 7 * elements)
    shapes = []

    class Watching(Plain):
        def __call__(self, batch):
            shapes.append((batch.target.dtype, *batch.target.shape[:2]))
            return super().__call__(batch)

    monkeypatch.setattr(equivalence, "Plain", Watching)
    reference = Reference(replicas, batch, loss)
    assert shapes == [(torch.float32, 4, 6)] * 4 + [(torch.float64, 4, 7)] * 2
    shapes.clear()
    assert reference.find_mismatch(partial(Watching, loss=loss)) is None
    assert shapes == [(torch.float64, 4, 7)] * 2 + [(torch.float32, 4, 24)]
    monkeypatch.setattr(equivalence, "COMPARED_ELEMENTS", 10)
    monkeypatch.setattr(capacity, "COMPARED_ELEMENTS", 10)
    shapes.clear()
    assert Reference(replicas, batch, loss).find_mismatch(VMAPPED) is None
    assert shapes == [(torch.float32, 4, 1)] * 24 + [(torch.float64, 2, 2)] * 2


def test_the_logits_of_a_large_vocabulary_are_bounded():
    """A batch of 32 texts of 256 words: 1.6 GiB of logits in float32 beside their gradients."""

    class Words(Small):
        def forward(self, prompt):
            return self.a.weight[0, 0] * prompt.tokens

    _, replicas, _ = stacked(Words, 1)
    words = torch.zeros(()).expand(1, 32, 256, 50_257)
    batch = Batch(Sequence(words), words)
    assert capacity.prompts_at_once(replicas, loss, batch) in range(2, 6)


@pytest.mark.parametrize("make", [VMAPPED, THREADED], ids=["vmapped", "threaded"])
def test_what_a_forward_pass_leaves_is_compared(make):
    _, replicas, batch = stacked(Forgetful)
    mismatch = Reference(replicas, batch, loss).find_mismatch(make)
    assert mismatch == "a forward pass leaves norm.running_mean unlike plain's"


def test_a_buffer_that_is_replaced_is_not_vmapped():
    _, replicas, batch = stacked(Averaging)
    assert "leaves scale unlike" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


def test_without_float64_a_buffer_that_is_replaced_is_a_mismatch_too():
    """Equal losses and gradients do not make what a forward pass leaves equal."""
    _, replicas, batch = stacked(Averaging)
    mismatch = Reference(replicas, batch, loss).find_mismatch(VMAPPED, in_float64=False)
    assert "leaves scale unlike" in mismatch


def test_what_cannot_be_compared_is_not_used():
    _, replicas, batch = stacked(Overflowing)
    assert "not finite" in Reference(replicas, batch, loss).find_mismatch(VMAPPED)


@pytest.mark.parametrize("cls", [Counting, Clamping])
def test_the_comparison_leaves_everything_as_it_was(cls):
    _, replicas, batch = stacked(cls)
    before = {name: value.clone() for name, value in replicas.state().items()}
    generator = torch.get_rng_state()
    reference = Reference(replicas, batch, loss)
    for make in (VMAPPED, THREADED):
        reference.find_mismatch(make)
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, before[name]) for name, value in replicas.state().items())
