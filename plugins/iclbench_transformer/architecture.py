"""The architecture `transformer`: softmax attention in the harness's sequence model."""

from __future__ import annotations

from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig

from .attention import SoftmaxAttention


class TransformerConfig(SequenceConfig):
    """Table D.1 of the least-squares paper: 12 layers, width 64, one head."""

    heads: int = Field(1, ge=1, description="attention heads; they divide the width")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> TransformerConfig:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {self.width}")
        return self


class Transformer(SequenceArchitecture):
    """GPT-2-like (least_squares, eq. 1 and D.1): pre-norm blocks of softmax attention and MLP."""

    name = "transformer"
    Config = TransformerConfig

    def mixer(self, width: int, length: int, causal: bool, config: TransformerConfig) -> nn.Module:
        """Softmax attention, (B, S, width) → (B, S, width)."""
        return SoftmaxAttention(width, config.heads, causal, config.init_std)
