"""The architecture `hybrid`: layers that alternate mixers of other models."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from iclbench import (
    Architecture,
    NamedMixer,
    SequenceConfig,
    SequenceModel,
    Signature,
    find_mixer,
    unknown,
)


class HybridConfig(SequenceConfig):
    """Layer i has the mixer i mod n of the n that are named."""

    mixers: tuple[str, ...] = Field(
        ("attention", "mamba"),
        validate_default=True,
        description="names of the mixers, repeated in turn over the layers",
    )
    mixer_args: dict[str, dict[str, Any]] = Field(
        {},
        validate_default=True,
        description='arguments of each mixer, such as {"attention": {"heads": 4}}',
    )

    @field_validator("mixers")
    @classmethod
    def _has_a_layer_for_each(
        cls, mixers: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        if not mixers:
            raise ValueError('name at least one, such as mixers=["attention","mamba"]')
        layers = info.data.get("layers", len(mixers))
        if len(mixers) > layers:
            raise ValueError(f"{len(mixers)} mixers need as many layers; there are {layers}")
        return mixers

    @field_validator("mixer_args")
    @classmethod
    def _with_defaults(
        cls, given: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        """Fill in every mixer's defaults, so that the configuration says all of the model."""
        fields = {*SequenceConfig.model_fields, "mixers"}
        # A field that is wrong itself has been reported.
        if not fields <= info.data.keys():
            return given
        mixers = info.data["mixers"]
        for name in given:
            if name not in mixers:
                raise unknown("mixer", name, mixers)
        block_options = SequenceConfig.among(info.data)
        return {
            name: find_mixer(name, block_options, given.get(name, {})).arguments()
            for name in dict.fromkeys(mixers)
        }

    def parts(self) -> dict[str, NamedMixer]:
        """Return the named mixers, each once."""
        block_options = SequenceConfig.among(dict(self))
        return {
            name: find_mixer(name, block_options, self.mixer_args[name])
            for name in dict.fromkeys(self.mixers)
        }


class Hybrid(Architecture):
    """The harness's sequence model with several mixers in turn."""

    name = "hybrid"
    Config = HybridConfig
    replica_args = frozenset({"init_std"})

    def supports(self, signature: Signature, config: HybridConfig) -> str | None:
        """Support what every mixer's model supports."""
        for name, part in config.parts().items():
            reason = part.architecture.supports(signature, part.config)
            if reason is not None:
                return f"mixer {name}: {reason}"
        return None

    def uses(self, config: HybridConfig) -> tuple[str, ...]:
        """Return the models that the mixers are from."""
        return tuple(part.architecture.name for part in config.parts().values())

    def build(self, signature: Signature, config: HybridConfig) -> SequenceModel:
        """Return the sequence model with the mixers in turn."""
        parts = config.parts()
        names = [config.mixers[i % len(config.mixers)] for i in range(config.layers)]
        mixers = [parts[name].make(signature.length) for name in names]
        return SequenceModel(signature, config, mixers)
