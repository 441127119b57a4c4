"""The GD transformer on text against its formula, prefix by prefix, in float64."""

from __future__ import annotations

import pytest
import torch

from iclbench import Signature, Text, TrainingContext, training_form
from iclbench.nn.generation import Sampling, decoder_of, generate
from iclbench.nn.logits import FactoredLogits, token_loss
from iclbench_gd_transformer.architecture import (
    CausalGDTransformer,
    GDTransformer,
)
from iclbench_gd_transformer.config import GDTransformerConfig
from iclbench_gd_transformer.cross_attention import chunked_expectation
from iclbench_gd_transformer.kernels import expectation

KERNELS = ("linear", "rbf", "exponential", "laplacian", "softmax")
T, C, WIDTH = 7, 11, 6


def signature(length=T, vocabulary=C, readout=None):
    return Signature(
        prompt=Text,
        target="token",
        length=length,
        input_width=0,
        output_width=vocabulary,
        readout=tuple(range(length)) if readout is None else readout,
        causal=True,
        vocabulary=vocabulary,
    )


def built(architecture=GDTransformer, readout=None, **args):
    config = GDTransformerConfig(**{"embedding": WIDTH, "heads": 3, "kernel": "softmax", **args})
    assert architecture().supports(signature(readout=readout), config) is None
    torch.manual_seed(0)
    made = architecture().build(signature(readout=readout), config).double().eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return made


def ids(count=2, length=T):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(C, (count, length), generator=generator)


def kernel_value(kind, a, b):
    if kind == "linear":
        return float(a @ b)
    if kind == "rbf":
        return float(torch.exp(-((a - b) ** 2).sum()))
    if kind == "laplacian":
        return float(torch.exp(-(a - b).abs().sum()))
    return float(torch.exp(a @ b))


def by_hand(model, kind, prefix, blocks):
    """Equation 3 with Appendix H's heads, on one prefix (t,), written out position by position."""
    w, p = model.embedding, model.positions
    n = len(prefix)
    f = [torch.zeros(WIDTH, dtype=torch.float64) for _ in range(n + 1)]
    for k in range(blocks):
        change = [torch.zeros(WIDTH, dtype=torch.float64) for _ in range(n + 1)]
        expected = [torch.softmax(w @ f[i], dim=0) @ w for i in range(n)]
        for diagonal, project in zip(model.diagonal, model.project[k], strict=True):
            for j in range(n + 1):
                values = torch.tensor(
                    [kernel_value(kind, diagonal * p[i], diagonal * p[j]) for i in range(n)],
                    dtype=torch.float64,
                )
                values = values / (values.sum() if kind == "softmax" else n)
                for i in range(n):
                    change[j] = change[j] + project * values[i] * (w[prefix[i]] - expected[i])
        f = [a + b for a, b in zip(f, change, strict=True)]
    state = f[n]
    if model.feed_forward is not None:
        state = state + model.feed_forward(model.norm1(state))
    return model.norm(state) @ w.mT


@pytest.mark.parametrize("feed_forward", [False, True])
@pytest.mark.parametrize("kind", KERNELS)
def test_one_block_is_one_step_on_every_prefix(kind, feed_forward):
    model, text = built(kernel=kind, feed_forward=feed_forward), ids()
    with torch.no_grad():
        found = model(Text(text))
        for row in range(len(text)):
            for t in range(T):
                own = by_hand(model, kind, text[row, : t + 1], 1)
                torch.testing.assert_close(found[row, t], own, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KERNELS)
def test_several_blocks_are_as_many_steps_on_each_prefix(kind):
    model, text = built(kernel=kind, blocks=3), ids()
    with torch.no_grad():
        found = model(Text(text))
        for t in (0, 3, T - 1):
            own = by_hand(model, kind, text[0, : t + 1], 3)
            torch.testing.assert_close(found[0, t], own, rtol=1e-9, atol=1e-9)


def test_one_prefix_costs_one_pass_and_answers_the_same():
    whole, last = built(blocks=2), built(blocks=2, readout=(T - 1,))
    last.load_state_dict(whole.state_dict())
    passes = []
    plain = type(last).of_prefix
    last.of_prefix = lambda w: passes.append(w.shape) or plain(last, w)
    with torch.no_grad():
        torch.testing.assert_close(last(Text(ids()))[:, 0], whole(Text(ids()))[:, -1])
    assert passes == [(2, T, WIDTH)]


def test_the_causal_variant_is_the_same_with_one_block_and_another_model_with_two():
    for blocks, same in ((1, True), (2, False)):
        exact, causal = built(blocks=blocks), built(CausalGDTransformer, blocks=blocks)
        causal.load_state_dict(exact.state_dict())
        with torch.no_grad():
            a, b = exact(Text(ids())), causal(Text(ids()))
        assert torch.allclose(a, b, atol=1e-10) is same


def test_the_paper_s_size_has_8192_attention_weights():
    config = GDTransformerConfig(embedding=512, heads=8, kernel="softmax")
    with torch.device("meta"):
        model = GDTransformer().build(signature(256, 50_257), config)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    assert sizes["diagonal"] + sizes["project"] == 2 * 8 * 512 == 8192
    assert sizes["embedding"] == 50_257 * 512
    assert sizes["positions"] == 257 * 512
    assert set(sizes) == {
        "diagonal", "project", "embedding", "positions", "norm.weight", "norm.bias"
    }  # fmt: skip


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("kind", ["rbf", "softmax"])
@pytest.mark.parametrize("architecture", [GDTransformer, CausalGDTransformer])
def test_generating_with_a_cache_equals_generating_without(architecture, kind, blocks):
    model, text = built(architecture, kernel=kind, blocks=blocks), ids(length=3)
    with torch.no_grad():
        own, plain = decoder_of(model, T), decoder_of(model, T, cache=False)
        assert type(own) is not type(plain)
        for new in (text, text[:, :1], text[:, 1:2], text[:, :2]):
            torch.testing.assert_close(own.advance(new), plain.advance(new), rtol=1e-10, atol=1e-10)
        uniform = torch.rand(2, 4, generator=torch.Generator().manual_seed(0))
        made = [
            generate(model, text, 4, length=T, end=0, sampling=Sampling(1.0), uniform=uniform,
                     cache=cache)
            for cache in (True, False)
        ]  # fmt: skip
        assert torch.equal(*made)


def test_in_training_the_logits_are_factors_with_the_same_loss_and_gradient():
    model, text = built(feed_forward=True), ids()
    target = ids().flip(1)
    plain = token_loss(model(Text(text)), target).mean()
    wanted = torch.autograd.grad(plain, list(model.parameters()))
    context = TrainingContext(torch.device("cpu"), torch.float64, 3, factored_logits=True)
    factored = training_form(model, context)(Text(text))
    assert isinstance(factored, FactoredLogits)
    loss = token_loss(factored, target).mean()
    torch.testing.assert_close(loss, plain)
    for a, b in zip(torch.autograd.grad(loss, list(model.parameters())), wanted, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KERNELS)
def test_gradients_are_finite_and_reach_every_parameter(kind):
    model = built(CausalGDTransformer, kernel=kind, blocks=2, feed_forward=True)
    token_loss(model(Text(ids())), ids()).mean().backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        # p_1 is nobody's query but in the first block, and its Λ and P are.
        assert parameter.grad.abs().sum() > 0, name


def test_cross_attention_in_chunks_is_cross_attention(monkeypatch):
    from iclbench_gd_transformer import cross_attention

    monkeypatch.setattr(cross_attention, "WEIGHTS_PER_CHUNK", 3 * C)
    generator = torch.Generator().manual_seed(2)
    f = torch.randn(2, 5, WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(C, WIDTH, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(chunked_expectation(f, w), expectation(f, w))
    assert torch.autograd.gradcheck(chunked_expectation, (f, w))


@pytest.mark.parametrize(
    ("args", "reason"), [({"form": "free"}, "as the free model"), ({"erase": 50.0}, "overwritten")]
)
def test_what_is_for_classes_is_refused_on_text(args, reason):
    config = GDTransformerConfig(**{"kernel": "rbf", **args})
    assert reason in GDTransformer().supports(signature(), config)
