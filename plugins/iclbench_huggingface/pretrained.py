"""Weights that transformers saved in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator
from torch import Tensor

from iclbench import Config, Construction, Signature, Task, UsageError, file_digest

#: The files that `save_pretrained` writes.
CONFIG, WEIGHTS = "config.json", "model.safetensors"


class PretrainedConfig(Config):
    """The folder, and what it must hold."""

    folder: str = Field(description="folder written by `save_pretrained` of transformers")
    sha256: str = Field("", description="SHA-256 of the folder's weights; empty: computed")

    @model_validator(mode="before")
    @classmethod
    def _identify(cls, values: Any) -> Any:
        """Fill in the digest, so that a record says which weights it started from."""
        folder = Path(str(values.get("folder", "")))
        for name in (CONFIG, WEIGHTS):
            if "folder" in values and not (folder / name).is_file():
                raise ValueError(f"{folder} has no {name}")
        if "folder" not in values:
            return values
        digest = file_digest(folder / WEIGHTS)
        if values.get("sha256", "") not in {"", digest}:
            raise ValueError(f"{folder / WEIGHTS} has the digest {digest}")
        return {**values, "sha256": digest}


class Pretrained(Construction):
    """The layers of a saved model; the embedding and the read-out stay random."""

    summary = "pretrained layers from a folder saved by transformers, for --init"
    Config = PretrainedConfig

    def build(
        self, signature: Signature, args: PretrainedConfig, task: Task[Any]
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return the arguments that the saved config stands for, and the layers' weights."""
        from .saved import arguments_of, saved_layers

        model = saved_layers(Path(args.folder))
        positions = getattr(model.config, "max_position_embeddings", signature.length)
        if positions < signature.length:
            raise UsageError(
                f"the model in {args.folder} has {positions} positions, the prompt "
                f"{signature.length}"
            )
        layers = model.double().state_dict()  # as all constructions are given
        state = {f"backbone.model.{name}": value for name, value in layers.items()}
        return arguments_of(model.config), state
