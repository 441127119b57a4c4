"""The recurrent architectures: their arguments, and the mixers that they stack."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import nn

from iclbench import SequenceArchitecture, SequenceConfig, SequenceModel, Signature, UsageError

from . import attention, delta_net, state_space
from .mixer import RecurrentMixer


class RecurrentConfig(SequenceConfig):
    """Options of every recurrent architecture."""

    @model_validator(mode="after")
    def _is_causal(self) -> RecurrentConfig:
        if not self.causal:
            raise ValueError("causal=false: a recurrence reads from the first position to the last")
        return self


class KernelConfig(RecurrentConfig):
    """Options of every recurrent architecture for which there are kernels."""

    kernels: Literal["native", "fla"] = Field(
        "native",
        description="native, or fla: train in float32 on a GPU with the kernels of "
        "flash-linear-attention",
    )


class MambaConfig(RecurrentConfig):
    """Options of Mamba."""

    states: int = Field(16, ge=1, description="N, size of the state per channel")
    expand: int = Field(2, ge=1, description="number of inner channels, as a multiple of the width")


class Mamba2Config(KernelConfig):
    """Options of Mamba-2."""

    expand: int = Field(2, ge=1, description="number of inner channels, as a multiple of the width")
    states: int = Field(64, ge=1, description="N, size of the state per channel")
    heads: int = Field(
        4, ge=1, description="number of heads; it must divide the number of inner channels"
    )

    @model_validator(mode="after")
    def _heads_divide(self) -> Mamba2Config:
        require_divisor(self.heads, self.expand * self.width, "inner channels")
        return self


class HeadsConfig(KernelConfig):
    """Options of mixers with keys and values."""

    #: The default widths of all heads' keys and values, in widths.
    ratios: ClassVar[tuple[float, float]] = (1.0, 1.0)

    heads: int = Field(
        4, ge=1, description="number of heads; it must divide the widths of keys and values"
    )
    key_width: int | None = Field(
        None,
        ge=1,
        description="width of the keys of all heads together; null: the paper's ratio to the width",
    )
    value_width: int | None = Field(
        None,
        ge=1,
        description="width of the values of all heads together; null: the paper's ratio to the "
        "width",
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

    negative_eigenvalues: bool = Field(
        False,
        description="take β from (0, 2) instead of (0, 1), so that the state can have negative "
        "eigenvalues",
    )


class DeltaNetConfig(HeadsConfig):
    """Options of DeltaNet."""

    negative_eigenvalues: bool = Field(
        False,
        description="take β from (0, 2) instead of (0, 1), so that the state can have negative "
        "eigenvalues",
    )
    updates: int = Field(
        1,
        ge=1,
        description="number of updates of the state per position; more than 1: DeltaProduct",
    )


class HGRN2Config(KernelConfig):
    """Options of HGRN2."""

    heads: int = Field(
        4,
        ge=1,
        description="number of heads; it must divide the width; each channel has width / heads "
        "states",
    )

    @model_validator(mode="after")
    def _heads_divide(self) -> HGRN2Config:
        require_divisor(self.heads, self.width, "width")
        return self


def require_divisor(heads: int, size: int, name: str) -> None:
    """Raise ValueError if the heads do not divide a width."""
    if size % heads or not size:
        raise ValueError(f"{heads} heads do not divide the {name} {size}")


class KernelArchitecture(SequenceArchitecture):
    """An architecture whose mixers may train by kernels, as the configuration says."""

    def mixer(self, width: int, length: int, causal: bool, config: Any) -> nn.Module:
        """Return a mixer (B, S, width) → (B, S, width).

        Raises UsageError for kernels in float64.
        """
        # Models are built in the dtype of their run.
        if config.kernels == "fla" and torch.get_default_dtype() == torch.float64:
            raise UsageError("kernels=fla computes in float32; use kernels=native for float64")
        mixer = self.recurrence(width, config)
        mixer.uses_kernel = config.kernels == "fla"
        return mixer

    def recurrence(self, width: int, config: Any) -> RecurrentMixer:
        """Return a mixer without regard to kernels."""
        raise NotImplementedError


class Mamba(SequenceArchitecture):
    """Selective state spaces (Gu and Dao 2023)."""

    name = "mamba"
    Config = MambaConfig

    def mixer(self, width: int, length: int, causal: bool, config: MambaConfig) -> nn.Module:
        """Return a Mamba layer, (B, S, width) → (B, S, width)."""
        inner = config.expand * width
        return state_space.Mamba(width, inner, config.states, config.init_std)


class Mamba2(KernelArchitecture):
    """State space duality (Dao and Gu 2024)."""

    name = "mamba2"
    Config = Mamba2Config

    def recurrence(self, width: int, config: Mamba2Config) -> RecurrentMixer:
        """Return a Mamba-2 layer, (B, S, width) → (B, S, width)."""
        inner = config.expand * width
        return state_space.Mamba2(width, inner, config.states, config.heads, config.init_std)


class GatedLinearAttention(KernelArchitecture):
    """Linear attention with a decay of every key (Yang et al. 2023)."""

    name = "gated-linear-attention"
    Config = GatedLinearAttentionConfig

    def recurrence(self, width: int, config: HeadsConfig) -> RecurrentMixer:
        """Return a gated linear attention layer, (B, S, width) → (B, S, width)."""
        return attention.GatedLinearAttention(width, config.heads, *config.widths, config.init_std)


class Retention(KernelArchitecture):
    """RetNet's linear attention with fixed decays (Sun et al. 2023)."""

    name = "retention"
    Config = RetentionConfig

    def recurrence(self, width: int, config: HeadsConfig) -> RecurrentMixer:
        """Return a multi-scale retention layer, (B, S, width) → (B, S, width)."""
        return attention.Retention(width, config.heads, *config.widths, config.init_std)


class DeltaNet(KernelArchitecture):
    """The delta rule (Yang et al. 2024), and DeltaProduct (Siems et al. 2025)."""

    name = "delta-net"
    Config = DeltaNetConfig

    def recurrence(self, width: int, config: DeltaNetConfig) -> RecurrentMixer:
        """Return a DeltaNet layer, (B, S, width) → (B, S, width)."""
        return delta_net.DeltaNet(
            width,
            config.heads,
            *config.widths,
            config.init_std,
            negative_eigenvalues=config.negative_eigenvalues,
            updates=config.updates,
        )


class GatedDeltaNet(KernelArchitecture):
    """The delta rule with a decay (Yang, Kautz and Hatamizadeh 2024)."""

    name = "gated-delta-net"
    Config = GatedDeltaNetConfig

    def recurrence(self, width: int, config: GatedDeltaNetConfig) -> RecurrentMixer:
        """Return a Gated DeltaNet layer, (B, S, width) → (B, S, width)."""
        return delta_net.GatedDeltaNet(
            width,
            config.heads,
            *config.widths,
            config.init_std,
            negative_eigenvalues=config.negative_eigenvalues,
        )


class HGRN2(KernelArchitecture):
    """Gated linear RNNs with state expansion (Qin et al. 2024)."""

    name = "hgrn2"
    Config = HGRN2Config

    def recurrence(self, width: int, config: HGRN2Config) -> RecurrentMixer:
        """Return the first layer, whose lower bounds are 0, (B, S, width) → (B, S, width)."""
        return attention.HGRN2(width, config.heads, config.init_std)

    def build(self, signature: Signature, config: HGRN2Config) -> SequenceModel:
        """Return the sequence model, whose layers after the first share their lower bounds."""
        model = super().build(signature, config)
        bounds = nn.Parameter(torch.zeros(config.layers, config.width))
        for layer, block in enumerate(model.blocks):
            mixer: Any = block.mixer
            if layer > 0:
                mixer.set_bounds(bounds, layer)
        return model
