"""The recurrent architectures: their arguments, and the mixers that they stack."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig, SequenceModel, Signature

from . import attention, delta_net, state_space


class RecurrentConfig(SequenceConfig):
    """Options of every recurrent architecture."""

    @model_validator(mode="after")
    def _is_causal(self) -> RecurrentConfig:
        if not self.causal:
            raise ValueError("causal=false: a recurrence reads from the first position to the last")
        return self


class StateSpaceConfig(RecurrentConfig):
    """Options of Mamba."""

    states: int = Field(16, ge=1, description="N, size of the state per channel")
    expand: int = Field(2, ge=1, description="inner channels, in widths")


class Mamba2Config(StateSpaceConfig):
    """Options of Mamba-2."""

    states: int = Field(64, ge=1, description="N, size of the state per channel")
    heads: int = Field(4, ge=1, description="heads, which divide the inner channels")

    @model_validator(mode="after")
    def _heads_divide(self) -> Mamba2Config:
        require_divisor(self.heads, self.expand * self.width, "inner channels")
        return self


class HeadsConfig(RecurrentConfig):
    """Options of mixers with keys and values."""

    #: The default widths of all heads' keys and values, in widths.
    ratios: ClassVar[tuple[float, float]] = (1.0, 1.0)

    heads: int = Field(4, ge=1, description="heads, which divide the widths of keys and values")
    key_width: int | None = Field(
        None, ge=1, description="width of all heads' keys; null: the paper's ratio to the width"
    )
    value_width: int | None = Field(
        None, ge=1, description="width of all heads' values; null: the paper's ratio to the width"
    )

    @property
    def widths(self) -> tuple[int, int]:
        """The widths of all heads' keys and values."""
        keys, values = (int(ratio * self.width) for ratio in self.ratios)
        return self.key_width or keys, self.value_width or values

    @model_validator(mode="after")
    def _heads_divide(self) -> HeadsConfig:
        for size, name in zip(self.widths, ("key width", "value width"), strict=True):
            require_divisor(self.heads, size, name)
        return self


class GatedLinearAttentionConfig(HeadsConfig):
    """Keys of half the width, as in the paper."""

    ratios = (0.5, 1.0)


class RetentionConfig(HeadsConfig):
    """Values of twice the width, as in the paper."""

    ratios = (1.0, 2.0)

    @model_validator(mode="after")
    def _keys_are_pairs(self) -> RetentionConfig:
        if self.widths[0] // self.heads % 2:
            raise ValueError(
                f"{self.heads} heads leave an odd key width {self.widths[0] // self.heads}; "
                "rotations need pairs"
            )
        return self


class GatedDeltaNetConfig(HeadsConfig):
    """Values of twice the width, as in the paper."""

    ratios = (1.0, 2.0)

    negative_eigenvalues: bool = Field(False, description="β in (0, 2) instead of (0, 1)")


class DeltaNetConfig(HeadsConfig):
    """Options of DeltaNet."""

    negative_eigenvalues: bool = Field(False, description="β in (0, 2) instead of (0, 1)")
    updates: int = Field(1, ge=1, description="updates of the state a step (DeltaProduct)")


class HGRN2Config(RecurrentConfig):
    """Options of HGRN2."""

    states: int = Field(16, ge=1, description="size of the state per channel; divides the width")

    @model_validator(mode="after")
    def _states_divide(self) -> HGRN2Config:
        if self.width % self.states:
            raise ValueError(f"states={self.states} does not divide the width {self.width}")
        return self


def require_divisor(heads: int, size: int, name: str) -> None:
    """Raise ValueError if the heads do not divide a width."""
    if size % heads or not size:
        raise ValueError(f"{heads} heads do not divide the {name} {size}")


class Mamba(SequenceArchitecture):
    """Selective state spaces (Gu and Dao 2023)."""

    name = "mamba"
    Config = StateSpaceConfig

    def mixer(self, width: int, length: int, causal: bool, config: StateSpaceConfig) -> nn.Module:
        """Return a Mamba layer, (B, S, width) → (B, S, width)."""
        inner = config.expand * width
        return state_space.Mamba(width, inner, config.states, config.init_std)


class Mamba2(SequenceArchitecture):
    """State space duality (Dao and Gu 2024)."""

    name = "mamba2"
    Config = Mamba2Config

    def mixer(self, width: int, length: int, causal: bool, config: Mamba2Config) -> nn.Module:
        """Return a Mamba-2 layer, (B, S, width) → (B, S, width)."""
        inner = config.expand * width
        return state_space.Mamba2(width, inner, config.states, config.heads, config.init_std)


class GatedLinearAttention(SequenceArchitecture):
    """Linear attention with a decay of every key (Yang et al. 2023)."""

    name = "gated-linear-attention"
    Config = GatedLinearAttentionConfig

    def mixer(self, width: int, length: int, causal: bool, config: HeadsConfig) -> nn.Module:
        """Return a gated linear attention layer, (B, S, width) → (B, S, width)."""
        return attention.GatedLinearAttention(width, config.heads, *config.widths, config.init_std)


class Retention(SequenceArchitecture):
    """RetNet's linear attention with fixed decays (Sun et al. 2023)."""

    name = "retention"
    Config = RetentionConfig

    def mixer(self, width: int, length: int, causal: bool, config: HeadsConfig) -> nn.Module:
        """Return a multi-scale retention layer, (B, S, width) → (B, S, width)."""
        return attention.Retention(width, config.heads, *config.widths, config.init_std)


class DeltaNet(SequenceArchitecture):
    """The delta rule (Yang et al. 2024), and DeltaProduct (Siems et al. 2025)."""

    name = "delta-net"
    Config = DeltaNetConfig

    def mixer(self, width: int, length: int, causal: bool, config: DeltaNetConfig) -> nn.Module:
        """Return a DeltaNet layer, (B, S, width) → (B, S, width)."""
        return delta_net.DeltaNet(
            width,
            config.heads,
            *config.widths,
            config.init_std,
            negative_eigenvalues=config.negative_eigenvalues,
            updates=config.updates,
        )


class GatedDeltaNet(SequenceArchitecture):
    """The delta rule with a decay (Yang, Kautz and Hatamizadeh 2024)."""

    name = "gated-delta-net"
    Config = GatedDeltaNetConfig

    def mixer(
        self, width: int, length: int, causal: bool, config: GatedDeltaNetConfig
    ) -> nn.Module:
        """Return a Gated DeltaNet layer, (B, S, width) → (B, S, width)."""
        return delta_net.GatedDeltaNet(
            width,
            config.heads,
            *config.widths,
            config.init_std,
            negative_eigenvalues=config.negative_eigenvalues,
        )


class HGRN2(SequenceArchitecture):
    """Gated linear RNNs with state expansion (Qin et al. 2024)."""

    name = "hgrn2"
    Config = HGRN2Config

    def mixer(self, width: int, length: int, causal: bool, config: HGRN2Config) -> nn.Module:
        """Return the first layer, whose lower bounds are 0, (B, S, width) → (B, S, width)."""
        return attention.HGRN2(width, width // config.states, config.init_std, 0, None)

    def build(self, signature: Signature, config: HGRN2Config) -> SequenceModel:
        """Return the sequence model, whose layers after the first share their lower bounds."""
        bounds = nn.Parameter(torch.zeros(config.layers, config.width))
        heads = config.width // config.states
        mixers: list[nn.Module] = [
            self.mixer(config.width, signature.length, config.causal, config),
            *(
                attention.HGRN2(config.width, heads, config.init_std, layer, bounds)
                for layer in range(1, config.layers)
            ),
        ]
        return SequenceModel(signature, config, mixers)
