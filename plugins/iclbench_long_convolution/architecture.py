"""The architectures `hyena` and `h3`: long convolutions in the harness's sequence model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig

from .h3 import H3Mixer
from .hyena import HyenaMixer


class ConvolutionConfig(SequenceConfig):
    """Options of both models."""

    convolution: Literal["auto", "direct", "fft"] = Field(
        "auto", description="compute by direct sums or FFT; auto: direct up to 128 positions"
    )

    @model_validator(mode="after")
    def _is_causal(self) -> ConvolutionConfig:
        if not self.causal:
            raise ValueError("causal=false: these convolutions are causal")
        return self


class HyenaConfig(ConvolutionConfig):
    """The published operator of order 2."""

    order: int = Field(
        2, ge=2, le=16, description="number of gates, one more than the number of long convolutions"
    )
    short: int = Field(3, ge=1, description="length of the short convolutions of all projections")
    filter_width: int = Field(64, ge=1, description="hidden size of the filters' MLP")
    frequency: float = Field(
        1.0, gt=0, description="initial frequency of the sines in the filters' MLP"
    )


class H3Config(ConvolutionConfig):
    """The published layer: 64 states, heads of width 1."""

    state: int = Field(
        64, ge=2, description="N, number of states per channel, and length of the shift"
    )
    head_width: int = Field(
        1, ge=1, description="width of each head; it must divide the width of the model"
    )

    @model_validator(mode="after")
    def _sizes_fit(self) -> H3Config:
        if self.state % 2:
            raise ValueError(f"state={self.state} is odd: states are complex, in conjugate pairs")
        if self.width % self.head_width:
            raise ValueError(
                f"heads of width {self.head_width} do not divide the width {self.width}"
            )
        return self


class Hyena(SequenceArchitecture):
    """The Hyena operator (Poli et al. 2023)."""

    name = "hyena"
    Config = HyenaConfig

    def mixer(self, width: int, length: int, causal: bool, config: HyenaConfig) -> nn.Module:
        """Return a Hyena operator, (B, S, width) → (B, S, width)."""
        return HyenaMixer(
            width,
            length,
            order=config.order,
            short=config.short,
            filter_width=config.filter_width,
            frequency=config.frequency,
            convolution=config.convolution,
            init_std=config.init_std,
        )


class H3(SequenceArchitecture):
    """The H3 layer (Fu et al. 2023)."""

    name = "h3"
    Config = H3Config

    def mixer(self, width: int, length: int, causal: bool, config: H3Config) -> nn.Module:
        """Return an H3 layer, (B, S, width) → (B, S, width)."""
        return H3Mixer(
            width,
            states=config.state,
            head_width=config.head_width,
            convolution=config.convolution,
            init_std=config.init_std,
        )
