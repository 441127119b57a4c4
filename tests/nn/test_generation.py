"""Choosing ids, and generating them with and without a cache."""

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


def chosen(sampling, draws=1000):
    """The share of each id over an even grid of draws, which is its probability."""
    uniform = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    ids = sampling.choose(LOGITS.expand(draws, -1), uniform)
    return torch.bincount(ids, minlength=LOGITS.shape[1]).double() / draws


def test_at_temperature_0_the_likeliest_is_chosen():
    assert chosen(Sampling())[1] == 1


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_ids_are_as_frequent_as_they_are_likely(temperature):
    expected = (LOGITS[0] / temperature).softmax(dim=0)
    torch.testing.assert_close(chosen(Sampling(temperature)), expected, atol=2e-3, rtol=0)


def test_top_k_keeps_the_likeliest_alone():
    kept = torch.tensor([0.0, 2.0, 0.0, 1.5, 0.3]).double()
    expected = torch.where(kept > 0, kept, -torch.inf).softmax(dim=0)
    torch.testing.assert_close(chosen(Sampling(1.0, top_k=3)), expected, atol=2e-3, rtol=0)
    assert chosen(Sampling(1.0, top_k=1))[1] == 1


def test_top_p_keeps_the_fewest_that_sum_up_to_it():
    chances = LOGITS[0].softmax(dim=0)
    two = float(chances[1] + chances[3])
    for top_p, expected in ((two - 1e-6, {1, 3}), (two + 1e-6, {1, 3, 4}), (1e-9, {1})):
        assert set(chosen(Sampling(1.0, top_p=top_p)).nonzero()[:, 0].tolist()) == expected
    torch.testing.assert_close(chosen(Sampling(1.0, top_p=1.0)), chances, atol=2e-3, rtol=0)


def test_the_largest_draw_chooses_an_id_that_is_kept():
    last = torch.tensor([1 - 2**-53], dtype=torch.float64)
    assert int(Sampling(1.0, top_k=2).choose(LOGITS, last)) == 3


def model(architecture=Transformer, **args):
    torch.manual_seed(0)
    config = architecture.Config(**{"layers": 2, "width": 12, "init_std": 0.5, **args})
    return architecture().build(SIGNATURE, config).double().eval()


@pytest.mark.parametrize(
    "args",
    [{}, {"heads": 3}, {"heads": 2, "head_width": 5}, {"tied": True}, {"attention": "linear"}],
    ids=str,
)
def test_a_cache_gives_the_same_logits_and_ids(args):
    made, ids = model(**args), torch.randint(C, (3, 3), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        own, plain = decoder_of(made, T), decoder_of(made, T, cache=False)
        assert isinstance(own, SequenceDecoder)
        for new in (ids, ids[:, :1], ids[:, 1:], ids[:, :1]):
            torch.testing.assert_close(own.advance(new), plain.advance(new), rtol=1e-10, atol=1e-12)
        uniform = torch.rand(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        made_ids = [
            generate(made, ids, 5, length=T, end=C, sampling=Sampling(1.0), uniform=uniform,
                     cache=cache)
            for cache in (True, False)
        ]  # fmt: skip
    assert torch.equal(*made_ids)
    assert made_ids[0].shape == (3, 5)


@pytest.mark.parametrize(
    ("architecture", "args"),
    [(BaseConv, {}), (Transformer, {"attention": "linear", "mean": True})],
    ids=["baseconv", "mean"],
)
def test_what_has_no_cache_is_asked_anew(architecture, args):
    made = model(architecture, **args)
    assert isinstance(decoder_of(made, T), Recompute)
    ids = torch.randint(C, (2, 3), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = made(Text(torch.nn.functional.pad(ids, (0, T - 3), value=5)))
        torch.testing.assert_close(decoder_of(made, T).advance(ids), whole[:, 2])


class Counts(nn.Module):
    """The next id is one more; ids stop at END = 5."""

    def forward(self, prompt):
        return nn.functional.one_hot((prompt.ids + 1).clamp(max=C - 1), C).double()


def test_a_text_ends_where_the_model_says():
    beginnings = torch.tensor([[0, 3], [0, 1]])
    found = generate(
        Counts(), beginnings, 6, length=T, end=5, sampling=Sampling(), uniform=torch.zeros(2, 6)
    )
    assert found.tolist() == [[4, 5, 5, 5], [2, 3, 4, 5]]


@pytest.mark.parametrize(("width", "count"), [(512, 6_291_456), (None, 786_432)])
def test_the_paper_s_transformer_has_heads_of_full_width(width, count):
    config = TransformerConfig(layers=1, width=512, heads=8, head_width=width)
    with torch.device("meta"):
        mixer = Transformer().mixer(512, 256, True, config)
    assert mixer.qkv.weight.numel() == count == 8 * 3 * 512 * (width or 64)


def test_a_tied_read_out_is_the_embedding_and_one_parameter():
    tied, free = model(tied=True), model()
    assert tied.readout.weight is tied.embed.ids.weight
    assert "readout.weight" not in dict(tied.named_parameters())
    sizes = [sum(p.numel() for p in m.parameters()) for m in (tied, free)]
    assert sizes[1] - sizes[0] == 12 * C + C
