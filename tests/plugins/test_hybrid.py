"""Hybrids: which mixers their layers have, by name, and what a record says of them."""

from __future__ import annotations

import pytest
import torch

from iclbench import UsageError
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.runs.plan import resolve
from iclbench_hybrid.architecture import Hybrid, HybridConfig
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_transformer.architecture import Transformer, TransformerConfig

SIGNATURE = LeastSquares(FixedConfig(examples=4)).signature


def test_layers_alternate_the_mixers():
    args = {"attention": {"heads": 4}, "hyena": {"order": 3}}
    config = HybridConfig(
        layers=5, width=8, mixers=("attention", "hyena", "hyena"), mixer_args=args
    )
    mixers = [block.mixer for block in Hybrid().build(SIGNATURE, config).blocks]
    names = ["SoftmaxAttention", "HyenaMixer", "HyenaMixer", "SoftmaxAttention", "HyenaMixer"]
    assert [type(mixer).__name__ for mixer in mixers] == names
    assert (mixers[0].heads, mixers[1].order) == (4, 3)
    assert mixers[1] is not mixers[2]


def test_a_hybrid_of_one_mixer_is_that_model():
    shape = {"layers": 2, "width": 8}
    torch.manual_seed(0)
    hybrid = Hybrid().build(SIGNATURE, HybridConfig(mixers=("attention",), **shape))
    torch.manual_seed(0)
    plain = Transformer().build(SIGNATURE, TransformerConfig(**shape))
    states = [list(model.state_dict().items()) for model in (hybrid, plain)]
    for (name, a), (expected, b) in zip(*states, strict=True):
        assert name == expected
        assert torch.equal(a, b)


def test_the_configuration_says_all_of_the_model():
    config = HybridConfig(mixers=("transformer", "h3"), mixer_args={"h3": {"state": 4}})
    assert config.mixer_args == {
        "transformer": {"heads": 1, "attention": "softmax", "mean": False},
        "h3": {"convolution": "auto", "state": 4, "head_width": 1},
    }
    assert HybridConfig(**config.model_dump(mode="json")) == config


def test_a_record_names_the_plugins_of_the_mixers():
    args = {"layers": 2, "width": 8, "mixers": ["attention", "h3"]}
    plan = resolve(RunSpec(model="hybrid", task="least-squares", model_args=args))
    names = {plugin.name for plugin in plan.plugins}
    assert {"hybrid", "transformer", "long-convolution"} <= names


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"mixers": []}, "mixers: name at least one"),
        ({"mixers": ["atention"]}, "unknown mixer 'atention'; did you mean 'attention'"),
        ({"mixers": ["zero"]}, "model 'zero' has no mixer"),
        ({"mixers": ["lstm"]}, "model 'lstm' has no mixer"),
        ({"mixers": ["hybrid"]}, "model 'hybrid' has no mixer"),
        ({"mixers": ["h3"], "mixer_args": {"hyena": {}}}, "unknown mixer 'hyena'; known: h3"),
        ({"mixers": ["h3"], "mixer_args": {"h3": {"state": 0}}}, "mixer h3: state: input should"),
        (
            {"mixers": ["h3"], "mixer_args": {"h3": {"width": 3}}},
            "width is an argument of the whole",
        ),
        ({"mixers": ["h3"], "causal": False}, "mixer h3: causal=false"),
        ({"mixers": ["attention"], "layers": 0}, "layers: input should be greater"),
    ],
)
def test_bad_arguments_get_one_line(args, reason):
    with pytest.raises(UsageError, match=reason) as error:
        parse_config(HybridConfig, args, "model hybrid")
    assert "\n" not in str(error.value)


def test_a_hybrid_supports_what_all_its_mixers_support():
    config = HybridConfig(mixers=("attention",), tied=True)
    reason = Hybrid().supports(SIGNATURE, config)
    assert reason == "mixer attention: tied=true is for tasks that ask for a token of each position"
