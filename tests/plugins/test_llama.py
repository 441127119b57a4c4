"""Llama: equal to transformers' LlamaModel with the same weights, and with its cache."""

from __future__ import annotations

import pytest
import torch
from random_tensors import randn

from iclbench import UsageError
from iclbench.api.config import parse_config
from iclbench_llama.architecture import Llama, LlamaConfig

SMALL = {"layers": 2, "width": 16, "heads": 4, "init_std": 0.3}


def backbone(**args):
    torch.manual_seed(0)
    return Llama().backbone(9, LlamaConfig(**SMALL, **args)).double()


class Float64:
    """A stand-in for the module torch that knows no float32."""

    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@pytest.mark.parametrize("kv_heads", [None, 2, 1])
def test_states_are_those_of_transformers(monkeypatch, kv_heads):
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama import modeling_llama

    # Their norms, rotations and softmax compute in float32, whatever the dtype of the weights.
    monkeypatch.setattr(modeling_llama, "torch", Float64())
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    ours = backbone(kv_heads=kv_heads, rope_base=500.0, epsilon=1e-5, hidden=24)
    config = transformers.LlamaConfig(
        vocab_size=1, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, head_dim=4,
        num_key_value_heads=kv_heads or 4, intermediate_size=24, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )  # fmt: skip
    theirs = transformers.LlamaModel._from_config(config, attn_implementation="eager").double()
    missing, unexpected = theirs.load_state_dict(ours.state_dict(), strict=False)
    assert (missing, unexpected) == (["embed_tokens.weight"], [])
    x = randn(1, 3, 9, 16)
    states = theirs(inputs_embeds=x, use_cache=False).last_hidden_state
    torch.testing.assert_close(ours(x), states, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kv_heads", [None, 2])
def test_the_cache_continues_and_is_the_state(kv_heads):
    model, x = backbone(kv_heads=kv_heads), randn(2, 1, 9, 16)
    parts, cache = [], None
    for part in x.split([4, 1, 4], dim=1):
        y, cache = model.extend(part, cache)
        parts.append(y)
    torch.testing.assert_close(torch.cat(parts, dim=1), model(x), rtol=1e-12, atol=1e-12)
    assert model.state_sizes(9) == tuple(layer.numel() for layer in cache)


def test_only_distances_between_positions_count():
    attention = backbone().layers[0].self_attn
    q, k = randn(3, 1, 1, 6, 4), randn(4, 1, 1, 6, 4)
    scores = [attention._rotate(q, start) @ attention._rotate(k, start).mT for start in (0, 50)]
    torch.testing.assert_close(*scores, rtol=1e-12, atol=1e-12)


def test_angles_keep_their_digits_in_float32():
    narrow, wide = (
        backbone().to(dtype).layers[0].self_attn for dtype in (torch.float32, torch.float64)
    )
    x = randn(3, 1, 1, 4, 4)
    turned = narrow._rotate(x.float(), 100_000).double()
    torch.testing.assert_close(turned, wide._rotate(x, 100_000), rtol=0, atol=1e-6)


def test_hidden_size_is_8_thirds_of_the_width():
    assert LlamaConfig(width=64).hidden_size == 176
    assert LlamaConfig(width=3 * 64).hidden_size == 512
    assert LlamaConfig(width=64, hidden=7).hidden_size == 7


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"width": 10, "heads": 4}, "4 heads do not divide the width 10"),
        ({"width": 12, "heads": 4}, "need an even width"),
        ({"width": 16, "heads": 4, "kv_heads": 3}, "3 kv_heads do not divide the 4 heads"),
    ],
)
def test_bad_arguments_get_one_line(args, reason):
    with pytest.raises(UsageError, match=reason) as error:
        parse_config(LlamaConfig, args, "model llama")
    assert "\n" not in str(error.value)
