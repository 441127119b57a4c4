"""Recurrent models: layers match their papers' equations, extend a cache, and tell their state."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from recurrent_references import REFERENCES

from iclbench import (
    Architecture,
    Signature,
    Text,
    TrainingContext,
    UsageError,
    generate,
    host,
)
from iclbench.api.config import parse_config
from iclbench.api.prompts import Sequence
from iclbench.nn.generation import Recompute, Sampling, SequenceDecoder, decoder_of
from iclbench.runs.state_size import describe_state, state_sizes

README = Path(__file__).parents[2] / "plugins" / "iclbench_recurrent" / "README.md"
WIDTH = 8
CASES = [
    *((name, {}) for name in REFERENCES),
    ("mamba", {"states": 3, "expand": 1}),
    ("mamba2", {"states": 3, "heads": 2}),
    ("gated-linear-attention", {"heads": 2, "key_width": 6, "value_width": 10}),
    ("delta-net", {"negative_eigenvalues": True, "updates": 3, "heads": 2}),
    ("gated-delta-net", {"negative_eigenvalues": True, "heads": 1}),
    ("hgrn2", {"heads": 2}),
]
IDS = [f"{name} {args}" for name, args in CASES]


def mixer_of(name, args, layer=-1, seed=0):
    """Return the last of two layers at random parameters, in float64."""
    architecture = host().load("model", name, Architecture)()
    torch.manual_seed(seed)
    config = architecture.Config(layers=2, width=WIDTH, **args)
    signature = Signature(Sequence, "positions", 4, 3, 1, (3,))
    mixer = architecture.build(signature, config).blocks[layer].mixer.double()
    for parameter in mixer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return mixer


def assert_close(actual, expected, tolerance=1e-12):
    assert actual.shape == expected.shape
    assert float((actual - expected).norm()) <= tolerance * float(expected.norm())


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_layer_matches_its_equation(name, args, layer):
    mixer = mixer_of(name, args, layer)
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        expected = torch.stack([REFERENCES[name](mixer, prompt) for prompt in x])
        assert_close(mixer(x), expected)


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_recurrent_form_of_the_layer_matches_the_chunked_form(name, args):
    """One position after the other, and in parts, each continuing from the cache."""
    mixer = mixer_of(name, args)
    x = torch.randn(2, 150, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        expected = mixer(x)
        for parts in ([1] * 150, [70, 1, 79]):
            outputs, cache = [], None
            for part in x.split(parts, dim=1):
                output, cache = mixer.extend(part, cache)
                outputs.append(output)
            assert_close(torch.cat(outputs, dim=1), expected)


@pytest.mark.parametrize(("name", "args"), CASES, ids=IDS)
def test_cache_has_the_stated_size_at_every_length(name, args):
    mixer, cache = mixer_of(name, args), None
    for length in (1, 2, 7):
        _, cache = mixer.extend(torch.zeros(1, length, WIDTH).double(), cache)
        kept = cache if isinstance(cache, tuple) else (cache,)
        numbers = sum(t.numel() for t in kept if isinstance(t, torch.Tensor))
        assert mixer.state_sizes(length) == (numbers,)


@pytest.mark.parametrize(
    ("name", "args", "numbers"),
    [
        # The state of each paper, and what the convolutions keep: 3 inputs of every channel.
        ("mamba", {"states": 16}, 16 * 16 + 3 * 16),
        ("mamba2", {"states": 32}, 16 * 32 + 3 * (16 + 2 * 32)),
        ("gated-linear-attention", {}, 4 * (1 * 2)),
        ("retention", {}, 4 * (2 * 4)),
        ("delta-net", {}, 4 * (2 * 2) + 3 * (8 + 8 + 8)),
        ("delta-net", {"updates": 2}, 4 * (2 * 2) + 3 * (8 + 16 + 16)),
        ("gated-delta-net", {"heads": 2}, 2 * (4 * 8) + 3 * (8 + 8 + 16)),
        ("hgrn2", {}, 4 * (2 * 2)),
    ],
)
def test_state_sizes(name, args, numbers):
    architecture = host().load("model", name, Architecture)()
    config = architecture.Config(layers=3, width=WIDTH, **args)
    signature = Signature(Sequence, "positions", 4, 3, 1, (3,))
    assert state_sizes(architecture.build(signature, config), 4) == (numbers,) * 3
    assert "the same after 128" in describe_state(architecture, config)


@pytest.mark.parametrize("name", REFERENCES)
def test_generation_with_a_cache_rereads_nothing(name):
    architecture = host().load("model", name, Architecture)()
    length, vocabulary = 8, 13
    signature = Signature(
        Text, "token", length, 0, vocabulary, tuple(range(length)),
        causal=True, vocabulary=vocabulary,
    )  # fmt: skip
    torch.manual_seed(0)
    model = architecture.build(signature, architecture.Config(layers=2, width=WIDTH)).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    decoders = [decoder_of(model.eval(), length, cache=cache) for cache in (True, False)]
    assert [type(decoder) for decoder in decoders] == [SequenceDecoder, Recompute]
    ids = torch.randint(0, vocabulary, (3, length))
    with torch.no_grad():
        for part in ids.split([3, 1, 1, 3], dim=1):
            cached, reread = (decoder.advance(part) for decoder in decoders)
            assert_close(cached, reread)
        options = {"length": length, "end": 0, "sampling": Sampling()}
        texts = [
            generate(model, ids[:, :2], 5, uniform=torch.zeros(3, 5), cache=cache, **options)
            for cache in (True, False)
        ]
    assert torch.equal(*texts)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("mamba", {"states": 0}, "states: "),
        ("mamba", {"expand": 0}, "expand: "),
        ("mamba", {"causal": False}, "causal=false: a recurrence reads from the first position"),
        ("mamba2", {"heads": 3}, "3 heads do not divide the inner channels 128"),
        ("mamba2", {"states": 0}, "states: "),
        ("gated-linear-attention", {"heads": 3}, "3 heads do not divide the key width 32"),
        ("gated-linear-attention", {"width": 1}, "4 heads do not divide the key width 0"),
        ("gated-linear-attention", {"key_width": 0}, "key_width: "),
        ("retention", {"heads": 64}, "64 heads leave an odd key width 1"),
        ("retention", {"value_width": 6}, "4 heads do not divide the value width 6"),
        ("delta-net", {"updates": 0}, "updates: "),
        ("delta-net", {"heads": 0}, "heads: "),
        ("gated-delta-net", {"updates": 2}, "updates"),
        ("hgrn2", {"heads": 5}, "5 heads do not divide the width 64"),
        ("hgrn2", {"kernels": "cuda"}, "kernels: "),
        ("mamba", {"kernels": "fla"}, "kernels"),
    ],
)
def test_bad_arguments_get_one_line(name, args, message):
    config = host().load("model", name, Architecture).Config
    with pytest.raises(UsageError, match=message) as error:
        parse_config(config, args, f"model {name}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["delta-net", "gated-delta-net"])
@pytest.mark.parametrize("negative", [False, True])
def test_beta_exceeds_1_only_with_negative_eigenvalues(name, negative):
    mixer, betas = mixer_of(name, {"negative_eigenvalues": negative}), []

    def record(*inputs, state):
        betas.append(inputs[3])
        return mixer.chunked(*inputs, state=state)

    mixer.mix(10 * torch.randn(2, 20, WIDTH, dtype=torch.float64), None, record)
    assert float(betas[0].detach().max()) == pytest.approx(2 if negative else 1, abs=0.01)
    assert float(betas[0].detach().min()) == pytest.approx(0, abs=0.01)


def test_table_of_the_readme_shows_the_states():
    """The last column of the first table: numbers in a layer's state at width 64."""
    text = README.read_text("utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| ([\d,]+) \|$", text, re.M)
    assert {name for name, _ in rows} == set(REFERENCES)
    signature = Signature(Sequence, "positions", 4, 3, 1, (3,))
    for name, shown in rows:
        architecture = host().load("model", name, Architecture)()
        model = architecture.build(signature, architecture.Config(layers=1))
        assert state_sizes(model, 4) == (int(shown.replace(",", "")),)


def test_lower_bounds_grow_with_depth_from_0_and_are_one_parameter():
    architecture = host().load("model", "hgrn2", Architecture)()
    signature = Signature(Sequence, "positions", 4, 3, 1, (3,))
    model = architecture.build(signature, architecture.Config(layers=4, width=WIDTH))
    mixers = [block.mixer for block in model.blocks]
    assert mixers[0].bounds is None
    assert all(mixer.bounds is mixers[1].bounds for mixer in mixers[1:])
    # Where σ → 0, f → γ; softmax of zeros gives 1/4 to each layer.
    with torch.no_grad():
        lowest = [float(m.gates(torch.full((1, 1, WIDTH), -99.0))[0].exp().max()) for m in mixers]
    assert lowest == pytest.approx([0, 0.25, 0.5, 0.75], abs=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_forget_gates_of_extreme_logits_have_gradients(layer):
    """Where σ rounds to 0 or 1 in float32, and γ is tiny."""
    mixer = mixer_of("hgrn2", {}, layer).float()
    if layer:
        mixer.bounds.data[0] = 60.0
    logits = torch.tensor([-200.0, -50.0, 50.0, 200.0]).expand(WIDTH, 4).mT[None].requires_grad_()
    log_forget, keys = mixer.gates(logits)
    (gradient,) = torch.autograd.grad(log_forget.exp().sum() + keys.sum(), logits)
    for tensor in (log_forget, keys, gradient):
        assert bool(tensor.isfinite().all())
    torch.testing.assert_close(log_forget.exp() + keys, torch.ones_like(keys))


@pytest.mark.parametrize("name", ["mamba", "hgrn2", "gated-linear-attention"])
@pytest.mark.parametrize("positions", [None, slice(1, None, 2)])
def test_training_on_short_prompts_uses_the_recurrence_on_a_cpu(name, positions):
    """It is faster there, and gives the same."""
    mixer = mixer_of(name, {})
    context = TrainingContext(
        torch.device("cpu"), torch.float64, 2, replicas="vmapped", length=9, positions=positions
    )
    form = mixer.for_training(context)
    x = torch.randn(2, 9, WIDTH, dtype=torch.float64)
    with torch.no_grad():
        expected = mixer(x)
        assert_close(form(x), expected if positions is None else expected[:, positions])
    assert list(form.parameters()) == list(mixer.parameters())
    for other in ({"length": 2_000}, {"device": torch.device("cuda")}, {"replicas": "leading"}):
        assert mixer.for_training(replace(context, **other)) is None
