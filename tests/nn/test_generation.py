"""Sampling ids, and generating them with and without a cache."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import Signature, Text
from iclbench.nn.generation import Recompute, Sampling, SequenceDecoder, decoder_of, generate
from iclbench_baseconv.architecture import BaseConv
from iclbench_transformer.architecture import Transformer, TransformerConfig

T, C = 8, 13
LOGITS = torch.tensor([[0.1, 2.0, -1.0, 1.5, 0.3]], dtype=torch.float64)
SIGNATURE = Signature(
    prompt=Text,
    target="token",
    length=T,
    input_width=0,
    output_width=C,
    readout=tuple(range(T)),
    causal=True,
    vocabulary=C,
)


def frequencies(sampling, draws=1000):
    """Return the frequency of every id over an even grid of draws, which is its probability."""
    uniform = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    ids = sampling.choose(LOGITS.expand(draws, -1), uniform)
    return torch.bincount(ids, minlength=LOGITS.shape[1]).double() / draws


def test_temperature_0_chooses_the_likeliest():
    assert frequencies(Sampling())[1] == 1


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_frequencies_match_probabilities(temperature):
    expected = (LOGITS[0] / temperature).softmax(dim=0)
    torch.testing.assert_close(frequencies(Sampling(temperature)), expected, atol=2e-3, rtol=0)


def test_top_k_keeps_only_the_likeliest():
    kept = torch.tensor([0.0, 2.0, 0.0, 1.5, 0.3]).double()
    expected = torch.where(kept > 0, kept, -torch.inf).softmax(dim=0)
    torch.testing.assert_close(frequencies(Sampling(1.0, top_k=3)), expected, atol=2e-3, rtol=0)
    assert frequencies(Sampling(1.0, top_k=1))[1] == 1


def test_top_p_keeps_the_smallest_set_that_reaches_it():
    probabilities = LOGITS[0].softmax(dim=0)
    two = float(probabilities[1] + probabilities[3])
    for top_p, expected in ((two - 1e-6, {1, 3}), (two + 1e-6, {1, 3, 4}), (1e-9, {1})):
        assert set(frequencies(Sampling(1.0, top_p=top_p)).nonzero()[:, 0].tolist()) == expected
    torch.testing.assert_close(
        frequencies(Sampling(1.0, top_p=1.0)), probabilities, atol=2e-3, rtol=0
    )


def test_largest_draw_chooses_a_kept_id():
    largest = torch.tensor([1 - 2**-53], dtype=torch.float64)
    assert int(Sampling(1.0, top_k=2).choose(LOGITS, largest)) == 3


def build(architecture=Transformer, **args):
    torch.manual_seed(0)
    config = architecture.Config(**{"layers": 2, "width": 12, "init_std": 0.5, **args})
    return architecture().build(SIGNATURE, config).double().eval()


@pytest.mark.parametrize(
    "args",
    [{}, {"heads": 3}, {"heads": 2, "head_width": 5}, {"tied": True}, {"attention": "linear"}],
    ids=str,
)
def test_cache_gives_the_same_logits_and_ids(args):
    model, ids = build(**args), torch.randint(C, (3, 3), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        cached, plain = decoder_of(model, T), decoder_of(model, T, cache=False)
        assert isinstance(cached, SequenceDecoder)
        for new in (ids, ids[:, :1], ids[:, 1:], ids[:, :1]):
            expected = plain.advance(new)
            torch.testing.assert_close(cached.advance(new), expected, rtol=1e-10, atol=1e-12)
        uniform = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        generated = [
            generate(model, ids, 5, length=T, end=C, sampling=Sampling(1.0), uniform=uniform,
                     cache=cache)
            for cache in (True, False)
        ]  # fmt: skip
    assert torch.equal(*generated)
    assert generated[0].shape == (3, 5)


@pytest.mark.parametrize(
    ("architecture", "args"),
    [(BaseConv, {}), (Transformer, {"attention": "linear", "mean": True})],
    ids=["baseconv", "mean"],
)
def test_model_without_a_cache_rereads_the_text(architecture, args):
    model = build(architecture, **args)
    assert isinstance(decoder_of(model, T), Recompute)
    ids = torch.randint(C, (2, 3), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(Text(torch.nn.functional.pad(ids, (0, T - 3), value=5)))
        torch.testing.assert_close(decoder_of(model, T).advance(ids), logits[:, 2])


class Counting(nn.Module):
    """Predicts the last id plus one."""

    def forward(self, prompt):
        return nn.functional.one_hot((prompt.ids + 1).clamp(max=C - 1), C).double()


def test_text_ends_at_the_end_id():
    beginnings = torch.tensor([[0, 3], [0, 1]])
    ids = generate(
        Counting(), beginnings, 6, length=T, end=5, sampling=Sampling(), uniform=torch.zeros(2, 6)
    )
    assert ids.tolist() == [[4, 5, 5, 5], [2, 3, 4, 5]]


@pytest.mark.parametrize(("width", "count"), [(512, 6_291_456), (None, 786_432)])
def test_heads_may_have_full_width(width, count):
    config = TransformerConfig(layers=1, width=512, heads=8, head_width=width)
    with torch.device("meta"):
        mixer = Transformer().mixer(512, 256, True, config)
    assert mixer.qkv.weight.numel() == count == 8 * 3 * 512 * (width or 64)


def test_tied_read_out_is_the_embedding_and_one_parameter():
    tied, untied = build(tied=True), build()
    assert tied.readout.weight is tied.embed.ids.weight
    assert "readout.weight" not in dict(tied.named_parameters())
    sizes = [sum(p.numel() for p in m.parameters()) for m in (tied, untied)]
    assert sizes[1] - sizes[0] == 12 * C + C
