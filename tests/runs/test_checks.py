"""Conformance checks catch broken promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import Architecture, SequenceArchitecture, SequenceConfig, UsageError
from iclbench.runs.causality import reads_ahead, require_causal
from iclbench.runs.checks import ConformanceError, check_architecture
from iclbench_baseconv.architecture import BaseConv, BaseConvConfig
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig

PREFIXES = LeastSquaresPrefixes(LeastSquaresConfig(dim=2, examples=4))
CONFIG = SequenceConfig(layers=1, width=4)


class Mean(nn.Module):
    """Mixes by the mean over all positions, even where it should be causal."""

    def forward(self, x):
        return x.mean(dim=1, keepdim=True).expand_as(x)


class ReadsAhead(SequenceArchitecture):
    name = "reads-ahead"

    def mixer(self, width, length, causal, config):
        return Mean()


class LeaksAtLast(SequenceArchitecture):
    """Initialized to zero, so that it leaks nothing before training."""

    name = "leaks-at-last"

    def mixer(self, width, length, causal, config):
        class Mixer(Mean):
            def __init__(self):
                super().__init__()
                self.gain = nn.Parameter(torch.zeros(width))

            def forward(self, x):
                return self.gain * super().forward(x)

        return Mixer()


class FixedPositions(SequenceArchitecture):
    """Has a parameter that is not trained."""

    name = "fixed-positions"

    def mixer(self, width, length, causal, config):
        return nn.Linear(width, width)

    def build(self, signature, config):
        model = super().build(signature, config)
        model.positions.requires_grad_(False)
        return model


class MixesPrompts(SequenceArchitecture):
    name = "mixes-prompts"

    def mixer(self, width, length, causal, config):
        class Mixer(nn.Module):
            def forward(self, x):
                return x - 10 * x.mean(dim=0)

        return Mixer()


class HasDeadParameters(SequenceArchitecture):
    name = "has-dead-parameters"

    def mixer(self, width, length, causal, config):
        class Mixer(nn.Module):
            def __init__(self):
                super().__init__()
                self.unused = nn.Parameter(torch.zeros(1))

            def forward(self, x):
                return x

        return Mixer()


def with_parameter(make):
    """An architecture whose mixer adds a parameter that `make` returns, of a width."""

    class Mixer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.bias = nn.Parameter(make(width))

        def forward(self, x):
            return x + (self.bias.real if self.bias.is_complex() else self.bias).nan_to_num()

    class HasParameter(SequenceArchitecture):
        name = "has-parameter"

        def mixer(self, width, length, causal, config):
            return Mixer(width)

    return HasParameter


def drawn_by_numpy(width):
    return torch.tensor(np.random.default_rng().standard_normal(width), dtype=torch.float32)


class Peeking(Architecture):
    """Not a sequence model, and without parameters: it answers with the next y."""

    name = "peeking"

    def supports(self, signature, config):
        return None

    def build(self, signature, config):
        class Module(nn.Module):
            def forward(self, prompt):
                return torch.cat([prompt.y, 0 * prompt.y[:, :1]], dim=1)

        return Module()


class Silent(LeastSquaresPrefixes):
    """A causal task that does not say how to mask its answers."""

    def mask_after(self, prompt, position):
        return None


class WrongShape(Architecture):
    name = "wrong-shape"

    def supports(self, signature, config):
        return None

    def build(self, signature, config):
        class Module(nn.Module):
            def forward(self, prompt):
                return prompt.tokens[:, :1]

        return Module()


class ChangesDtype(SequenceArchitecture):
    name = "changes-dtype"

    def mixer(self, width, length, causal, config):
        class Mixer(nn.Module):
            def forward(self, x):
                torch.set_default_dtype(torch.float64)
                return x

        return Mixer()


class ChangesDtypeInBuild(SequenceArchitecture):
    name = "changes-dtype-in-build"

    def mixer(self, width, length, causal, config):
        torch.set_default_dtype(torch.float64)
        return nn.Identity()


class WideBuffer(SequenceArchitecture):
    name = "wide-buffer"

    def mixer(self, width, length, causal, config):
        mixer = nn.Identity()
        mixer.register_buffer("phases", torch.ones(width, dtype=torch.complex128))
        return mixer


@pytest.mark.parametrize(
    ("architecture", "reason"),
    [
        (ReadsAhead, "changes with later"),
        (LeaksAtLast, "changes with later"),
        (Peeking, "changes with later"),
        (MixesPrompts, "other prompts"),
        (HasDeadParameters, "without a gradient: blocks.0.mixer.unused"),
        (WrongShape, "predicts"),
        (ChangesDtype, "changes torch's default dtype to torch.float64"),
        (ChangesDtypeInBuild, "changes torch's default dtype to torch.float64"),
        (with_parameter(drawn_by_numpy), "with one seed, its blocks.0.mixer.bias differs"),
        (with_parameter(torch.empty), "with one seed, its blocks.0.mixer.bias differs"),
        (with_parameter(lambda n: torch.zeros(n, dtype=torch.complex64)), "bias is complex"),
        (WideBuffer, "buffer blocks.0.mixer.phases is complex128"),
    ],
)
def test_an_architecture_that_breaks_its_promise_is_caught(architecture, reason):
    with pytest.raises(ConformanceError, match=reason):
        check_architecture(architecture(), PREFIXES, CONFIG)


@pytest.mark.parametrize("architecture", [ReadsAhead, LeaksAtLast, Peeking])
def test_a_model_that_reads_the_answers_is_refused(architecture):
    module = architecture().build(PREFIXES.signature, CONFIG)
    with pytest.raises(UsageError, match="would read the answers"):
        require_causal(module, PREFIXES)
    require_causal(module, LeastSquares(FixedConfig()))


def test_a_parameter_may_be_fixed():
    check_architecture(FixedPositions(), PREFIXES, CONFIG)


def test_a_model_that_cannot_be_tested_is_refused():
    silent = Silent(LeastSquaresConfig(dim=2, examples=4))
    module = Peeking().build(silent.signature, CONFIG)
    with pytest.raises(UsageError, match="can't test"):
        require_causal(module, silent)


@pytest.mark.parametrize("layers", [1, 12])
def test_a_deep_causal_model_without_norms_passes(layers):
    config = BaseConvConfig(layers=layers, width=64, layer_norm=False)
    assert reads_ahead(BaseConv().build(PREFIXES.signature, config), PREFIXES) is None
