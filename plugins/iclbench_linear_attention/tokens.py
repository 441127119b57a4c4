"""`lsa-tokens` and `elsa-tokens`: LSA and ELSA as mixers of the harness's sequence model."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig

from .modules import ELSA, LSA


class TokensConfig(SequenceConfig):
    """By default a single layer without norm and MLP, for which a closed form is known."""

    layers: int = Field(1, ge=1, description="number of blocks")
    width: int = Field(16, ge=1, description="embedding size")
    heads: int = Field(1, ge=1, description="number of heads, each of full width")
    layer_norm: bool = Field(False, description="LayerNorm before mixer, MLP and read-out")
    mlp: bool = Field(False, description="whether a ReLU MLP follows each mixer")
    init_std: float = Field(0.05, gt=0, description="standard deviation of initial weights")


class LSATokens(SequenceArchitecture):
    """LSA on the states H (S, width) of a sequence (Hagiwara, eq. 8), without a factor 1/S."""

    name = "lsa-tokens"
    Config = TokensConfig

    def mixer(self, width: int, length: int, causal: bool, config: Any) -> nn.Module:
        """Return multi-head LSA, (B, S, width) → (B, S, width)."""
        # Here a row of H is a position, not a dimension as in eq. 37: a causal mask acts on rows.
        return LSA(width, config.heads, config.init_std, causal)


class ELSATokens(SequenceArchitecture):
    """ELSA on the states of a sequence, with a bias per position (Hagiwara, eq. 16)."""

    name = "elsa-tokens"
    Config = TokensConfig

    def mixer(self, width: int, length: int, causal: bool, config: Any) -> nn.Module:
        """Return multi-head ELSA for S = length positions, (B, S, width) → (B, S, width)."""
        # Unlike LSA it depends on the length, since B has one row per position.
        return ELSA(length, width, config.heads, config.init_std, causal)
