"""Recipes that set an argument with another meaning, and those that fit."""

from __future__ import annotations

import pytest
from pydantic import Field

from iclbench import Architecture, ConformanceError, SequenceArchitecture, SequenceConfig, host
from iclbench.kit.recipes import check_recipe_args


class GatedConvConfig(SequenceConfig):
    kernel: int = Field(4, description="taps of the convolution")


class GatedConv(SequenceArchitecture):
    name = "gated-conv"
    Config = GatedConvConfig

    def mixer(self, width, length, causal, config):
        raise NotImplementedError


def test_an_argument_that_a_recipe_sets_otherwise_is_named():
    with pytest.raises(ConformanceError) as error:
        check_recipe_args(GatedConv)
    assert str(error.value).startswith(
        "recipe paper of stories sets kernel='softmax', which GatedConvConfig refuses "
        "(kernel: input should be a valid integer"
    )
    assert str(error.value).endswith("; rename the argument, or let it take this value")


@pytest.mark.parametrize("name", ["transformer", "hybrid", "h3"])
def test_arguments_that_fit_together_are_no_clash(name):
    assert check_recipe_args(host().load("model", name, Architecture)).startswith(
        "the arguments that "
    )
