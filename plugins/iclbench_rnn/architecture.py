"""The architectures `lstm` and `gru`."""

from __future__ import annotations

from pydantic import Field
from torch import nn

from iclbench import BackboneArchitecture, BackboneConfig

from .cells import GRUStack, LSTMStack


class RecurrentConfig(BackboneConfig):
    """Two layers: without residual connections, deep stacks hardly train.

    The embedding starts larger than in models whose norms scale it: at 0.02, training hardly leaves
    the error of predicting 0.
    """

    layers: int = Field(2, ge=1, description="number of layers")
    init_std: float = Field(
        1.0,
        gt=0,
        description="standard deviation of the initial weights of the embedding and the read-out",
    )


class LSTM(BackboneArchitecture):
    """Stacked LSTM layers (Hochreiter and Schmidhuber 1997)."""

    name = "lstm"
    Config = RecurrentConfig
    # Recipes set what suits models with norms, such as 0.06.
    own_args = frozenset({"init_std"})

    def backbone(self, length: int, config: RecurrentConfig) -> nn.Module:
        """Return the layers, (B, S, width) → (B, S, width)."""
        return LSTMStack(config.layers, config.width)


class GRU(BackboneArchitecture):
    """Stacked GRU layers (Cho et al. 2014)."""

    name = "gru"
    Config = RecurrentConfig
    # Recipes set what suits models with norms, such as 0.06.
    own_args = frozenset({"init_std"})

    def backbone(self, length: int, config: RecurrentConfig) -> nn.Module:
        """Return the layers, (B, S, width) → (B, S, width)."""
        return GRUStack(config.layers, config.width)
