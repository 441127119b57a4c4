"""Mixers are found by name, with their arguments."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import (
    Entry,
    PluginError,
    SequenceArchitecture,
    SequenceConfig,
    UsageError,
    find_mixer,
)
from iclbench.nn.mixers import host
from iclbench_transformer.architecture import Transformer

SHARED = SequenceConfig(width=8, init_std=0.3)


@pytest.mark.parametrize("name", ["attention", "transformer"])
def test_a_mixer_has_the_name_of_its_model_or_its_own(name):
    mixer = find_mixer(name, SHARED, {"heads": 2})
    assert isinstance(mixer.architecture, Transformer)
    assert (mixer.config.width, mixer.config.heads, mixer.config.init_std) == (8, 2, 0.3)
    assert mixer.make(5)(torch.zeros(2, 5, 8)).shape == (2, 5, 8)
    assert mixer.arguments() == {"heads": 2, "attention": "softmax", "mean": False}


class Shift(SequenceArchitecture):
    name = "shift"

    def mixer(self, width, length, causal, config):
        return nn.Linear(width, width)


def test_mixers_of_any_plugin_are_found(provide, cli):
    provide("model", "shift", Shift)
    assert isinstance(find_mixer("shift", SHARED, {}).make(5), nn.Linear)
    assert "mixer in hybrids: shift" in cli("describe", "shift").out
    assert "mixer in hybrids: attention" in cli("describe", "transformer").out
    assert "mixer in hybrids" not in cli("describe", "zero").out


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("atention", {}, "unknown mixer 'atention'; did you mean 'attention'"),
        ("zero", {}, "model 'zero' has no mixer"),
        ("attention", {"head": 2}, "mixer attention: unknown field 'head'; did you mean 'heads'?"),
        ("attention", {"layers": 2}, "mixer attention: layers is an argument of the whole model"),
    ],
)
def test_unknown_names_are_refused(name, args, reason):
    with pytest.raises(UsageError, match=reason):
        find_mixer(name, SHARED, args)


def test_a_name_of_two_mixers_is_refused(monkeypatch):
    twins = [Entry(name, "a model", "nowhere:Model", mixer="twin") for name in ("a", "b")]
    monkeypatch.setattr(
        type(host()), "entries", lambda self, kind: iter([(None, entry) for entry in twins])
    )
    with pytest.raises(PluginError, match="several models provide the mixer 'twin': a, b"):
        find_mixer("twin", SHARED, {})


def test_the_name_of_a_mixer_is_checked():
    assert Entry("model", "a model", "module:Model", mixer="my-mixer").problem() is None
    problem = Entry("model", "a model", "module:Model", mixer="My mixer").problem()
    assert problem == "model: mixer 'My mixer' is not lower-case words joined by hyphens"
