"""The architecture `transformer`: softmax attention in the harness's sequence model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig, added_later

from .attention import LinearAttention, SoftmaxAttention


class TransformerConfig(SequenceConfig):
    """Table D.1 of the least-squares paper: 12 layers, width 64, one head."""

    heads: int = Field(1, ge=1, description="number of attention heads; it must divide the width")
    head_width: int | None = added_later(
        None, ge=1, description="width of each head's queries, keys and values; null: width / heads"
    )
    attention: Literal["softmax", "linear"] = Field(
        "softmax", description="softmax: softmax(QKᵀ/√d)V; linear: (QKᵀ/√d)V"
    )
    mean: bool = Field(False, description="divide linear attention by the number of positions")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> TransformerConfig:
        if self.head_width is None and self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {self.width}")
        if self.mean and self.attention == "softmax":
            raise ValueError("mean=true is for attention=linear")
        return self


class Transformer(SequenceArchitecture):
    """GPT-2-like: pre-norm blocks of attention and MLP (Liu et al., eq. 1 and D.1)."""

    name = "transformer"
    Config = TransformerConfig

    def mixer(self, width: int, length: int, causal: bool, config: TransformerConfig) -> nn.Module:
        """Return multi-head attention, (B, S, width) → (B, S, width)."""
        shape = (width, config.heads, config.head_width or width // config.heads)
        if config.attention == "linear":
            return LinearAttention(*shape, causal, config.init_std, mean=config.mean)
        return SoftmaxAttention(*shape, causal, config.init_std)
