"""The architecture `llama`."""

from __future__ import annotations

from pydantic import Field, model_validator
from torch import nn

from iclbench import BackboneArchitecture, BackboneConfig

from .layers import LlamaBackbone


class LlamaConfig(BackboneConfig):
    """The block of Llama in the sizes of the harness's transformer."""

    heads: int = Field(1, ge=1, description="number of attention heads; it must divide the width")
    kv_heads: int | None = Field(
        None,
        ge=1,
        description="number of heads of keys and values; it must divide `heads`; null: equal to "
        "`heads`",
    )
    hidden: int | None = Field(
        None,
        ge=1,
        description="hidden size of SwiGLU; null: 8/3 of the width, rounded up to a multiple of 8",
    )
    rope_base: float = Field(
        10_000.0, gt=1, description="base of the frequencies of the rotary positions"
    )
    epsilon: float = Field(1e-6, gt=0, description="ε, added to the mean square in RMSNorm")

    @model_validator(mode="after")
    def _heads_fit(self) -> LlamaConfig:
        if self.width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {self.width}")
        if self.width // self.heads % 2:
            raise ValueError(
                f"heads of width {self.width // self.heads}: rotary positions need an even width"
            )
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"{self.kv_heads} kv_heads do not divide the {self.heads} heads")
        return self

    @property
    def hidden_size(self) -> int:
        """The hidden size of SwiGLU."""
        return self.hidden or -(-8 * self.width // 24) * 8


class Llama(BackboneArchitecture):
    """Pre-norm blocks of rotary attention and SwiGLU, without biases (Touvron et al. 2023)."""

    name = "llama"
    Config = LlamaConfig

    def backbone(self, length: int, config: LlamaConfig) -> nn.Module:
        """Return the blocks and the final norm, (B, S, width) → (B, S, width)."""
        return LlamaBackbone(config)
