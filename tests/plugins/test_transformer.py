"""The transformer: attention matches its formula, and its training forms match attention."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch

from iclbench import Signature, Text, TrainingContext, UsageError, training_form
from iclbench.api.config import parse_config
from iclbench.runs.checks import check_architecture
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_transformer import fast
from iclbench_transformer.architecture import Transformer, TransformerConfig
from iclbench_transformer.attention import LinearAttention, SoftmaxAttention
from iclbench_transformer.fast import FastAttention, MergedAttention
from iclbench_transformer.masks import MASKS

SMALL = {"layers": 2, "width": 8, "heads": 2}


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("heads", [1, 4])
def test_attention_matches_its_formula(causal, heads):
    torch.manual_seed(0)
    layer = SoftmaxAttention(8, heads, 8 // heads, causal, 0.5).double()
    x = torch.randn(3, 6, 8, dtype=torch.float64)
    query, key, value = (x @ layer.qkv.weight.T + layer.qkv.bias).split(8, dim=2)
    parts, d = [], 8 // heads
    for h in range(heads):
        s = slice(h * d, (h + 1) * d)
        scores = query[..., s] @ key[..., s].mT / math.sqrt(d)
        if causal:
            scores = scores + torch.full((6, 6), -torch.inf).double().triu(1)
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        parts.append(weights @ value[..., s])
    expected = torch.cat(parts, 2) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"layer_norm": False},
        {"mlp": False},
        {"causal": False},
        {"attention": "linear"},
        {"attention": "linear", "mean": True, "causal": False},
    ],
)
def test_it_conforms(args):
    config = TransformerConfig(**SMALL, **args)
    check_architecture(Transformer(), LeastSquares(FixedConfig(examples=6)), config)


def test_it_conforms_on_prefixes():
    task = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
    check_architecture(Transformer(), task, TransformerConfig(**SMALL))


def test_it_embeds_ids():
    signature = Signature(Text, "token", 5, 0, 9, tuple(range(5)), causal=True, vocabulary=9)
    model = Transformer().build(signature, TransformerConfig(**SMALL))
    ids = torch.randint(0, 9, (2, 5))
    assert model(Text(ids)).shape == (2, 5, 9)
    assert model.embed.real is None
    assert not torch.equal(model(Text(ids)), model(Text((ids + 1) % 9)))


def test_paper_s_model_has_its_size():
    """12 layers of width 64 with a 4× MLP have 12·(12·64² + 13·64) parameters, plus the frame's."""
    signature = LeastSquares(FixedConfig()).signature
    model = Transformer().build(signature, TransformerConfig())
    blocks = 12 * (12 * 64**2 + 13 * 64)
    frame = (6 * 64 + 64) + 21 * 64 + 2 * 64 + (64 + 1)
    assert sum(p.numel() for p in model.parameters()) == blocks + frame


def test_public_names_are_as_documented():
    signature = LeastSquares(FixedConfig()).signature
    names = set(Transformer().build(signature, TransformerConfig(**SMALL)).state_dict())
    for name in ("embed.real.weight", "positions", "blocks.0.norm1.weight", "norm.weight",
                 "blocks.1.mixer.qkv.weight", "blocks.1.norm2.weight", "blocks.0.mlp.0.weight",
                 "readout.weight"):  # fmt: skip
        assert name in names


def test_initial_weights_have_the_stated_deviation():
    signature = LeastSquares(FixedConfig()).signature
    config = TransformerConfig(init_std=0.05)
    model = Transformer().build(signature, config)
    drawn = {n: p for n, p in model.named_parameters() if p.numel() > 50 and p.std() > 0}
    for name, parameter in drawn.items():
        # Four standard errors of a standard deviation.
        tolerance = 4 / (2 * parameter.numel()) ** 0.5
        assert parameter.std().item() == pytest.approx(0.05, rel=tolerance), name
    assert len(drawn) >= 4 * config.layers + 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"heads": 3}, "3 heads do not divide the width 64"),
        ({"layers": 0}, "layers: "),
        ({"layer": 2}, "did you mean 'layers'"),
        ({"width": "wide"}, "width: "),
        ({"mean": True}, "mean=true is for attention=linear"),
    ],
)
def test_bad_arguments_are_refused(args, message):
    with pytest.raises(UsageError, match=message):
        parse_config(TransformerConfig, args, "model transformer")


def test_non_causal_model_refuses_prefixes():
    signature = LeastSquaresPrefixes(LeastSquaresConfig()).signature
    assert Transformer().supports(signature, TransformerConfig()) is None
    assert "answers" in Transformer().supports(signature, TransformerConfig(causal=False))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("mean", [True, False])
def test_linear_attention_matches_its_formula(causal, mean):
    torch.manual_seed(0)
    layer = LinearAttention(6, 2, 3, causal, 0.5, mean=mean).double()
    u = torch.randn(3, 5, 6, dtype=torch.float64)
    query, key, value = layer.qkv(u).split(6, dim=2)
    heads = []
    for h in (slice(0, 3), slice(3, 6)):
        scores = torch.einsum("bsd,btd->bst", query[..., h], key[..., h]) / 3**0.5
        scores = scores / 5 if mean else scores
        scores = torch.tril(scores) if causal else scores
        heads.append(torch.einsum("bst,btd->bsd", scores, value[..., h]))
    torch.testing.assert_close(layer(u), layer.output(torch.cat(heads, dim=2)))


def test_mask_created_in_a_transform_is_not_cached():
    MASKS.clear()
    layer = SoftmaxAttention(4, 1, 4, True, 0.5)
    x = torch.randn(1, 5, 4)
    torch.func.jacrev(layer)(x)
    torch.testing.assert_close(copy.deepcopy(layer)(x), layer(x))
    assert all(type(mask) is torch.Tensor and mask.untyped_storage() for mask in MASKS.values())


def test_few_masks_serve_many_lengths():
    MASKS.clear()
    layer = SoftmaxAttention(4, 1, 4, True, 0.5)
    for length in range(1, 70):
        layer(torch.randn(1, length, 4))
    assert len(MASKS) <= 8


@pytest.mark.parametrize("attention", [SoftmaxAttention, LinearAttention])
def test_low_precision_is_mixed_in_float32(attention):
    torch.manual_seed(0)
    layer = attention(64, 4, 16, True, 0.5)
    query, key, value = (4 * torch.randn(2, 4, 256, 16).bfloat16() for _ in range(3))
    exact = layer.mix(query.double(), key.double(), value.double())
    with torch.autocast("cpu", torch.bfloat16):
        mixed = layer.mix(query, key, value)
    for result in (mixed, layer.mix(query, key, value)):
        assert result.dtype == torch.bfloat16
        error = (result.double() - exact).norm() / exact.norm()
        # One rounding; scores that are rounded to bfloat16 too err by more.
        assert error < 2e-3


#: A batch for which merging the weights is worthwhile.
LARGE = TrainingContext(torch.device("cpu"), torch.float64, batch_size=10**6, length=7)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("heads", "head_width"), [(1, 3), (2, 3), (1, 6), (1, 8)])
@pytest.mark.parametrize("positions", [None, slice(1, 7, 2), slice(6, 7), slice(0, 7)], ids=str)
@pytest.mark.parametrize("replicas", ["alone", "vmapped"])
def test_training_forms_match_the_attention(causal, heads, head_width, positions, replicas):
    torch.manual_seed(0)
    layer = SoftmaxAttention(6, heads, head_width, causal, 0.5).double()
    for part in (layer.qkv, layer.output):
        torch.nn.init.normal_(part.bias)
    x = torch.randn(2, 7, 6, dtype=torch.float64, requires_grad=True)
    form = training_form(layer, replace(LARGE, positions=positions, replicas=replicas))
    merges = head_width >= 6 and replicas == "alone"
    assert isinstance(form, MergedAttention) == merges
    expected = layer(x) if positions is None else layer(x)[:, positions]
    results = [
        (y, *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()]))
        for y in (form(x), expected)
    ]
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("frozen", ["x", "qkv.weight", "qkv.bias", "output.weight", "output.bias"])
def test_merged_attention_gives_the_other_gradients_if_one_is_frozen(frozen):
    torch.manual_seed(0)
    layer = SoftmaxAttention(6, 1, 6, True, 0.5).double()
    leaves = {"x": torch.randn(2, 7, 6, dtype=torch.float64).requires_grad_()}
    leaves |= dict(layer.named_parameters())
    leaves[frozen].requires_grad_(False)
    trained = [leaf for name, leaf in leaves.items() if name != frozen]
    merged = training_form(layer, LARGE)
    assert isinstance(merged, MergedAttention)
    gradients, expected = (
        torch.autograd.grad(module(leaves["x"]).sin().sum(), trained) for module in (merged, layer)
    )
    torch.testing.assert_close(gradients, expected)


class DoubledScores(SoftmaxAttention):
    def mix(self, query, key, value, positions=None):
        return super().mix(2 * query, key, value, positions)


def test_weights_are_merged_only_if_equivalent_and_worthwhile(monkeypatch):
    monkeypatch.setattr(fast, "WORTH_MERGING", 60)
    context = TrainingContext(torch.device("cpu"), torch.float32, batch_size=2, length=5)

    def merges(cls=SoftmaxAttention, heads=1, qkv=None, **changes):
        layer = cls(6, heads, 6, True, 0.5)
        layer.qkv = qkv or layer.qkv
        return isinstance(training_form(layer, replace(context, **changes)), MergedAttention)

    assert merges()
    assert not merges(batch_size=1)
    assert merges(length=25)
    assert not merges(length=None)
    assert not merges(dtype=torch.bfloat16)
    assert not merges(autocast=torch.bfloat16)
    assert not merges(heads=2)
    assert not merges(replicas="vmapped")
    assert not merges(compiled=True)
    assert not merges(device=torch.device("meta"))
    # Without softmax, an offset of all scores of a query changes the result.
    assert not merges(LinearAttention)
    assert not merges(DoubledScores)
    assert not merges(qkv=torch.nn.Sequential(torch.nn.Linear(6, 18)))


def test_torch_s_kernel_is_used_only_on_a_cpu_and_for_softmax():
    def by_kernel(layer, **changes):
        form = training_form(layer, replace(LARGE, batch_size=1, length=3, **changes))
        return isinstance(form, FastAttention) and form.by_kernel

    shape = (8, 2, 4, True, 0.5)
    assert by_kernel(SoftmaxAttention(*shape))
    assert not by_kernel(SoftmaxAttention(*shape), replicas="vmapped")
    assert not by_kernel(SoftmaxAttention(*shape), device=torch.device("meta"))
    for layer in (LinearAttention(*shape), DoubledScores(*shape)):
        assert not by_kernel(layer, positions=slice(0, 1))
