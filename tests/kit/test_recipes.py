"""Recipes that set an argument with another meaning, and those that fit."""

from __future__ import annotations

import pytest
from pydantic import Field, model_validator

from iclbench import Architecture, ConformanceError, SequenceArchitecture, SequenceConfig, host
from iclbench.kit.recipes import check_recipe_args


class GatedConvConfig(SequenceConfig):
    kernel: int = Field(4, description="taps of the convolution")


class GatedConv(SequenceArchitecture):
    name = "gated-conv"
    Config = GatedConvConfig

    def mixer(self, width, length, causal, config):
        raise NotImplementedError


class NarrowConfig(SequenceConfig):
    """Heads that only a small width has room for."""

    heads: int = 1

    @model_validator(mode="after")
    def _fits(self) -> NarrowConfig:
        if self.heads * self.width > 512:
            raise ValueError(f"{self.heads} heads of {self.width} are too many")
        return self


class Narrow(GatedConv):
    name = "narrow"
    Config = NarrowConfig


def test_an_argument_with_another_meaning_is_named():
    assert check_recipe_args(GatedConv).endswith("; left out, since it refuses them: kernel")


def test_arguments_that_a_model_refuses_together_are_a_failure():
    with pytest.raises(ConformanceError) as error:
        check_recipe_args(Narrow)
    assert "heads=8" in str(error.value)
    assert "too many" in str(error.value)
    assert str(error.value).startswith("recipe ")


@pytest.mark.parametrize("name", ["transformer", "hybrid", "h3"])
def test_arguments_that_fit_together_are_no_clash(name):
    assert check_recipe_args(host().load("model", name, Architecture)).startswith(
        "the arguments that "
    )
