"""Models tell the size of the state that each layer keeps, and `describe` shows it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import (
    SequenceArchitecture,
    SequenceConfig,
    Signature,
    StatesSize,
    UsageError,
    host,
    offers,
)
from iclbench.api.prompts import Sequence
from iclbench.runs.state_size import describe_state, layers_text, state_bytes, state_sizes

SIGNATURE = Signature(Sequence, "positions", 7, 3, 1, (6,))


def built(name, **args):
    architecture = host().load("model", name, SequenceArchitecture)()
    return architecture.build(SIGNATURE, architecture.Config(layers=2, width=8, **args))


@pytest.mark.parametrize(
    ("name", "args", "per_layer"),
    [
        ("transformer", {"heads": 2}, 2 * 8 * 7),
        ("transformer", {"heads": 2, "head_width": 3}, 2 * 6 * 7),
        ("transformer", {"heads": 2, "attention": "linear"}, 2 * 4 * 4),
        ("baseconv", {}, 8 * 7),
        ("lsa-tokens", {"heads": 3}, 8 * 8),
        ("elsa-tokens", {"heads": 3}, 3 * 8 * 8),
    ],
)
def test_every_layer_tells_the_size_of_its_state(name, args, per_layer):
    assert state_sizes(built(name, **args), 7) == (per_layer, per_layer)


def test_a_mixer_that_gives_another_form_of_sizes_is_named():
    module = built("transformer")
    module.blocks[0].mixer.state_sizes = lambda length: 16
    with pytest.raises(
        UsageError, match=r"state_sizes\(\) of .*: a mixer must give .*not iterable"
    ):
        state_sizes(module, 7)


def test_keys_and_values_in_the_cache_are_the_state_of_softmax_attention():
    mixer = built("transformer", heads=2).blocks[0].mixer
    _, cache = mixer.extend(torch.zeros(1, 5, 8), None)
    assert mixer.state_sizes(5) == (cache.numel(),)


def test_bytes_depend_on_the_dtype():
    model = built("transformer")
    assert state_bytes(model, 3, torch.float64) == (2 * 8 * 3 * 8,) * 2
    assert state_bytes(nn.Linear(2, 2), 3, torch.float64) is None


class Silent(SequenceArchitecture):
    name = "silent"

    def mixer(self, width, length, causal, config):
        return nn.Identity()


def test_model_with_a_silent_mixer_does_not_tell():
    model = Silent().build(SIGNATURE, SequenceConfig(layers=1, width=8))
    assert offers(model, StatesSize)
    assert state_sizes(model, 7) is None
    assert describe_state(Silent(), SequenceConfig()) is None


def test_equal_neighbours_are_written_once():
    assert layers_text((4096, 4096, 512, 4096)) == "2 × 4,096 + 512 + 4,096 bytes"


def test_describe_shows_growth_with_the_length(cli):
    softmax, linear = (cli("describe", name).out for name in ("transformer", "lsa-tokens"))
    assert "12 × 32,768 bytes after 64 positions, 12 × 65,536 bytes after 128" in softmax
    assert "1,024 bytes after 64 positions, the same after 128" in linear
    # H of elsa: D = 5 rows and 2N + 2D + 3 columns for N = 63 and N = 127 examples.
    assert "2 × 2,780 bytes after 64 positions, 2 × 5,340" in cli("describe", "elsa").out
    assert "state of each layer" not in cli("describe", "functional-gd").out
