"""The architecture `baseconv`: gated convolutions in the harness's sequence model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig, Signature, added_later

from .constructions import (
    AffineMap,
    CausalDescent,
    Gradient,
    Multiplication,
    NonCausalDescent,
    Reading,
    Squaring,
)
from .mixer import BaseConvMixer


class BaseConvConfig(SequenceConfig):
    """Table D.1 of the least-squares paper: 12 layers, width 64."""

    bias: Literal["channel", "position"] = Field(
        "channel",
        description="one bias per channel, as in the published code, or one per position and "
        "channel",
    )
    convolution: Literal["auto", "direct", "fft"] = Field(
        "auto", description="compute by direct sums or FFT; auto: direct up to 128 positions"
    )
    taps: int | None = added_later(
        None, ge=1, description="length of the filters; null: the length of the prompt"
    )

    @model_validator(mode="after")
    def _short_filters_are_causal(self) -> BaseConvConfig:
        if self.taps is not None and not self.causal:
            raise ValueError("taps is for causal=true")
        return self


class BaseConv(SequenceArchitecture):
    """Gated convolution (Liu et al., eq. 2 and 40), causal or circular."""

    name = "baseconv"
    Config = BaseConvConfig
    constructions = {
        "read": Reading(),
        "affine": AffineMap(),
        "multiply": Multiplication(),
        "square": Squaring(),
        "gd-causal": CausalDescent(),
        "gd-non-causal": NonCausalDescent(),
        "gradient": Gradient(),
    }

    def supports(self, signature: Signature, config: BaseConvConfig) -> str | None:
        """As every sequence model, with filters that are no longer than the prompt."""
        if config.taps is not None and config.taps > signature.length:
            return f"taps={config.taps} exceeds the prompt's {signature.length} positions"
        return super().supports(signature, config)

    def mixer(self, width: int, length: int, causal: bool, config: BaseConvConfig) -> nn.Module:
        """Return a BaseConv layer, (B, S, width) → (B, S, width)."""
        return BaseConvMixer(
            width,
            length,
            causal,
            bias=config.bias,
            convolution=config.convolution,
            init_std=config.init_std,
            taps=config.taps,
        )
