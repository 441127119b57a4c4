"""Factored logits have the loss and gradients of logits, computed in chunks."""

from __future__ import annotations

import pytest
import torch
from torch.func import vmap

from iclbench.nn import logits
from iclbench.nn.logits import FactoredLogits, token_loss

B, P, V, D = 3, 5, 11, 4


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(logits, "MAX_LOGITS", 4 * V)


def factors(*lead, requires_grad=True):
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        tensor = torch.randn(*lead, *shape, generator=generator, dtype=torch.float64)
        return tensor.requires_grad_(requires_grad)

    target = torch.randint(V, (*lead, B, P), generator=generator)
    return normal(B, P, D), normal(V, D), normal(V), target


def test_loss_and_gradient_match_the_cross_entropy():
    states, weight, bias, target = factors()
    plain = torch.nn.functional.cross_entropy(
        (states @ weight.mT + bias).flatten(0, 1), target.flatten(), reduction="none"
    ).view(B, P)
    factored = token_loss(FactoredLogits(states, weight, bias), target)
    torch.testing.assert_close(factored, plain)
    torch.testing.assert_close(token_loss(states @ weight.mT + bias, target), plain)
    upstream = torch.rand(B, P, dtype=torch.float64)
    expected = torch.autograd.grad((plain * upstream).sum(), (states, weight, bias))
    gradients = torch.autograd.grad((factored * upstream).sum(), (states, weight, bias))
    torch.testing.assert_close(gradients, expected)


@pytest.mark.parametrize("with_bias", [True, False])
def test_gradients_match_finite_differences(with_bias):
    states, weight, bias, target = factors()

    def loss(states, weight, bias):
        return token_loss(FactoredLogits(states, weight, bias if with_bias else None), target)

    assert torch.autograd.gradcheck(loss, (states, weight, bias))


def test_replicas_can_be_vmapped():
    states, weight, bias, target = factors(2)

    def loss(states, weight, bias, target):
        return token_loss(FactoredLogits(states, weight, bias), target).mean()

    stacked = vmap(loss)(states, weight, bias, target)
    single = torch.stack([loss(states[r], weight[r], bias[r], target[r]) for r in range(2)])
    torch.testing.assert_close(stacked, single)
    for a, b in zip(
        torch.autograd.grad(stacked.sum(), (states, weight, bias), retain_graph=True),
        torch.autograd.grad(single.sum(), (states, weight, bias)),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_at_most_one_chunk_of_logits_is_held(monkeypatch):
    sizes = []
    compute_logits = logits._logits

    def spy(*args):
        chunk = compute_logits(*args)
        sizes.append(chunk.numel())
        return chunk

    monkeypatch.setattr(logits, "_logits", spy)
    states, weight, bias, target = factors()
    token_loss(FactoredLogits(states, weight, bias), target).sum().backward()
    # In the forward and in the backward pass, in chunks of four rows.
    assert len(sizes) == 2 * -(-B * P // 4)
    assert max(sizes) <= logits.MAX_LOGITS < B * P * V


@pytest.mark.gpu
def test_memory_on_a_gpu_is_far_below_that_of_the_logits(monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    monkeypatch.undo()
    rows, size = 64 * 256, 50_257
    states = torch.randn(64, 256, 512, device="cuda", requires_grad=True)
    weight = (0.02 * torch.randn(size, 512, device="cuda")).requires_grad_()
    target = torch.randint(size, (64, 256), device="cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    with torch.autocast("cuda", torch.bfloat16):
        token_loss(FactoredLogits(states, weight, None), target).mean().backward()
    peak = torch.cuda.max_memory_allocated() - before
    # The gradients of both factors and some chunks fit, the logits do not.
    assert peak < rows * size * 4 / 3


def test_under_autocast_products_are_bfloat16_and_losses_float32():
    states, weight, bias, target = factors()
    with torch.autocast("cpu", torch.bfloat16):
        low = token_loss(FactoredLogits(states.float(), weight.float(), bias.float()), target)
    exact = token_loss(FactoredLogits(states, weight, bias), target)
    assert low.dtype == torch.float32
    error = (low - exact).abs().max()
    assert 1e-4 < error < 0.1
    (grad,) = torch.autograd.grad(low.sum(), weight, retain_graph=True)
    (expected,) = torch.autograd.grad(exact.sum(), weight)
    assert (grad - expected).norm() < 0.02 * expected.norm()
