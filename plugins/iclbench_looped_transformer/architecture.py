"""The architecture `looped-transformer`."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from iclbench import (
    Architecture,
    NamedMixer,
    SequenceConfig,
    SequenceModel,
    Signature,
    find_mixer,
)

from .model import LoopedModel

LOOPS, TRAINED_LOOPS = 12, 6


class LoopedConfig(SequenceConfig):
    """One block, 12 loops of which the last 6 are trained."""

    layers: int = Field(1, ge=1, description="number of blocks per loop")
    loops: int = Field(LOOPS, ge=1, description="number of loops")
    trained_loops: int | None = Field(
        TRAINED_LOOPS,
        ge=1,
        description="number of last loops through which gradients flow and whose mean loss is "
        "trained; null: all. By default 6, or all of them if there are fewer, if they share no "
        "weights or if only the first sees the prompt",
    )
    shared: bool = Field(True, description="whether all loops share their weights")
    injection: bool = Field(
        True,
        description="whether to add the prompt to the states before each loop and normalize them "
        "after it; false: as in a plain transformer",
    )
    mixer: str = Field("attention", description="name of the mixer of the blocks")
    mixer_args: dict[str, Any] = Field(
        {}, validate_default=True, description='arguments of the mixer, such as {"heads": 8}'
    )

    @model_validator(mode="before")
    @classmethod
    def _trains_what_there_is(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "trained_loops" in given:
            return given
        loops = given.get("loops", LOOPS)
        is_short = isinstance(loops, int) and loops < TRAINED_LOOPS
        trains_all = is_short or False in (given.get("shared"), given.get("injection"))
        return {**given, "trained_loops": None} if trains_all else given

    @field_validator("mixer_args")
    @classmethod
    def _with_defaults(cls, given: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        """Fill in the mixer's defaults, so that the configuration says all of the model."""
        # A field that is wrong itself has been reported.
        if not {*SequenceConfig.model_fields, "mixer"} <= info.data.keys():
            return given
        block_options = SequenceConfig.among(info.data)
        return find_mixer(info.data["mixer"], block_options, given).arguments()

    @model_validator(mode="after")
    def _loops_fit(self) -> LoopedConfig:
        if self.trained_loops is not None and self.trained_loops > self.loops:
            raise ValueError(f"trained_loops={self.trained_loops} is more than loops={self.loops}")
        for name, untrained in (("shared", "some loops are"), ("injection", "the embedding is")):
            if not getattr(self, name) and self.trained_loops not in {None, self.loops}:
                raise ValueError(
                    f"{name}=false needs trained_loops=null: otherwise {untrained} never trained"
                )
        return self

    def named_mixer(self) -> NamedMixer:
        """Return the mixer with its configuration."""
        block_options = SequenceConfig.among(dict(self))
        return find_mixer(self.mixer, block_options, self.mixer_args)


class LoopedTransformer(Architecture):
    """z ← f(z + P) from z = 0, for the embedded prompt P and blocks f (Yang et al. 2024, eq. 3)."""

    name = "looped-transformer"
    Config = LoopedConfig
    replica_args = frozenset({"init_std"})

    def supports(self, signature: Signature, config: LoopedConfig) -> str | None:
        """Support what the mixer's model supports."""
        part = config.named_mixer()
        return part.architecture.supports(signature, part.config)

    def uses(self, config: LoopedConfig) -> tuple[str, ...]:
        """Return the model that the mixer is from."""
        return (config.named_mixer().architecture.name,)

    def build(self, signature: Signature, config: LoopedConfig) -> SequenceModel:
        """Return the model with the blocks of one loop, or of all if they share no weights."""
        count = config.layers if config.shared else config.layers * config.loops
        mixer = config.named_mixer()
        mixers = [mixer.make(signature.length) for _ in range(count)]
        return LoopedModel(signature, config, mixers)
