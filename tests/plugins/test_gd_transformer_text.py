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
from iclbench_gd_transformer.text_kernels import position_attention

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


def make_model(architecture=GDTransformer, readout=None, **args):
    config = GDTransformerConfig(**{"embedding": WIDTH, "heads": 3, "kernel": "softmax", **args})
    assert architecture().supports(signature(readout=readout), config) is None
    torch.manual_seed(0)
    model = architecture().build(signature(readout=readout), config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


def make_ids(count=2, length=T):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(C, (count, length), generator=generator)


def kernel_value(kernel, a, b):
    if kernel == "linear":
        return float(a @ b)
    if kernel == "rbf":
        return float(torch.exp(-((a - b) ** 2).sum()))
    if kernel == "laplacian":
        return float(torch.exp(-(a - b).abs().sum()))
    return float(torch.exp(a @ b))


def by_hand(model, kernel, prefix, blocks):
    """Eq. 3 with the heads of Appendix H on one prefix (t,), written out position by position."""
    w, p = model.embedding, model.positions
    n = len(prefix)
    f = [torch.zeros(WIDTH, dtype=torch.float64) for _ in range(n + 1)]
    for k in range(blocks):
        change = [torch.zeros(WIDTH, dtype=torch.float64) for _ in range(n + 1)]
        expected = [torch.softmax(w @ f[i], dim=0) @ w for i in range(n)]
        for diagonal, project in zip(model.diagonal, model.project[k], strict=True):
            for j in range(n + 1):
                values = torch.tensor(
                    [kernel_value(kernel, diagonal * p[i], diagonal * p[j]) for i in range(n)],
                    dtype=torch.float64,
                )
                values = values / (values.sum() if kernel == "softmax" else n)
                for i in range(n):
                    change[j] = change[j] + project * values[i] * (w[prefix[i]] - expected[i])
        f = [a + b for a, b in zip(f, change, strict=True)]
    state = f[n]
    if model.feed_forward is not None:
        state = state + model.feed_forward(model.norm1(state))
    return model.norm(state) @ w.mT


@pytest.mark.parametrize("feed_forward", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_one_block_is_one_step_on_every_prefix(kernel, feed_forward):
    model, text = make_model(kernel=kernel, feed_forward=feed_forward), make_ids()
    with torch.no_grad():
        logits = model(Text(text))
        for row in range(len(text)):
            for t in range(T):
                expected = by_hand(model, kernel, text[row, : t + 1], 1)
                torch.testing.assert_close(logits[row, t], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_several_blocks_are_as_many_steps_on_every_prefix(kernel):
    model, text = make_model(kernel=kernel, blocks=3), make_ids()
    with torch.no_grad():
        logits = model(Text(text))
        for t in (0, 3, T - 1):
            expected = by_hand(model, kernel, text[0, : t + 1], 3)
            torch.testing.assert_close(logits[0, t], expected, rtol=1e-9, atol=1e-9)


def test_one_read_out_costs_one_pass_and_gives_the_same_answer():
    whole, last = make_model(blocks=2), make_model(blocks=2, readout=(T - 1,))
    last.load_state_dict(whole.state_dict())
    passes = []
    plain = type(last).of_prefix
    last.of_prefix = lambda w: passes.append(w.shape) or plain(last, w)
    with torch.no_grad():
        torch.testing.assert_close(last(Text(make_ids()))[:, 0], whole(Text(make_ids()))[:, -1])
    assert passes == [(2, T, WIDTH)]


def test_the_causal_variant_is_exact_with_one_block_only():
    for blocks, same in ((1, True), (2, False)):
        exact, causal = make_model(blocks=blocks), make_model(CausalGDTransformer, blocks=blocks)
        causal.load_state_dict(exact.state_dict())
        with torch.no_grad():
            a, b = exact(Text(make_ids())), causal(Text(make_ids()))
        assert torch.allclose(a, b, atol=1e-10) is same


def test_the_paper_s_model_has_8192_attention_weights():
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
@pytest.mark.parametrize("kernel", ["rbf", "softmax"])
@pytest.mark.parametrize("architecture", [GDTransformer, CausalGDTransformer])
def test_generation_with_a_cache_equals_generation_without(architecture, kernel, blocks):
    model, text = make_model(architecture, kernel=kernel, blocks=blocks), make_ids(length=3)
    with torch.no_grad():
        cached, plain = decoder_of(model, T), decoder_of(model, T, cache=False)
        assert type(cached) is not type(plain)
        for new in (text, text[:, :1], text[:, 1:2], text[:, :2]):
            a, b = cached.advance(new), plain.advance(new)
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)
        uniform = torch.rand(2, 4, generator=torch.Generator().manual_seed(0))
        texts = [
            generate(model, text, 4, length=T, end=0, sampling=Sampling(1.0), uniform=uniform,
                     cache=cache)
            for cache in (True, False)
        ]  # fmt: skip
        assert torch.equal(*texts)


@pytest.mark.parametrize("readout", [None, (0, 2, 3)])
def test_factored_logits_in_training_have_the_same_loss_and_gradient(readout):
    model, text = make_model(feed_forward=True, readout=readout), make_ids()
    target = make_ids().flip(1)[:, : T if readout is None else len(readout)]
    plain = token_loss(model(Text(text)), target).mean()
    expected = torch.autograd.grad(plain, list(model.parameters()))
    context = TrainingContext(torch.device("cpu"), torch.float64, 3, factored_logits=True)
    form = training_form(model, context)
    # A list would be copied to a GPU at every step.
    assert isinstance(form.readout, slice if readout is None else torch.Tensor)
    factored = form(Text(text))
    assert isinstance(factored, FactoredLogits)
    loss = token_loss(factored, target).mean()
    torch.testing.assert_close(loss, plain)
    for a, b in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_finite_and_reach_every_parameter(kernel):
    model = make_model(CausalGDTransformer, kernel=kernel, blocks=2, feed_forward=True)
    token_loss(model(Text(make_ids())), make_ids()).mean().backward()
    for name, parameter in model.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_autocast_leaves_the_digits_of_distances():
    queries = torch.randn(1, 3, WIDTH)
    keys = queries + 1e-2 * torch.randn(1, 3, WIDTH)
    seen, counts = torch.ones(3, 3, dtype=torch.bool), torch.ones(3)
    with torch.autocast("cpu", torch.bfloat16):
        weights = position_attention("rbf", 5 * queries, 5 * keys, seen, counts)
    distances = torch.cdist(5 * queries.double(), 5 * keys.double())
    torch.testing.assert_close(weights.double(), (-distances.square()).exp(), rtol=1e-4, atol=1e-9)


def test_cross_attention_in_chunks_equals_cross_attention(monkeypatch):
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
def test_settings_for_classes_are_refused_on_text(args, reason):
    config = GDTransformerConfig(**{"kernel": "rbf", **args})
    assert reason in GDTransformer().supports(signature(), config)
