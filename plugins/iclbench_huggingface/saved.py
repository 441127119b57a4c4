"""Models saved by transformers, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModel

from .configs import NAMES, SPECIAL_IDS, built

#: Fields of a saved configuration that say nothing about the layers.
IRRELEVANT = {
    *("architectures", "dtype", "model_type", "name_or_path", "torch_dtype", "_name_or_path"),
    *("transformers_version", "use_cache", "vocab_size", *SPECIAL_IDS),
}


def saved_layers(folder: Path) -> Any:
    """Return the model in a folder, without its table of ids; raises UsageError."""
    model = built(AutoModel.from_pretrained, folder, local_files_only=True)
    model.set_input_embeddings(nn.Identity())
    return model


def arguments_of(config: Any) -> dict[str, Any]:
    """Return the model's arguments that build a model of this saved configuration."""
    sizes = {key: getattr(config, name) for key, name in NAMES.items() if hasattr(config, name)}
    taken = {*NAMES.values(), *(config.attribute_map.get(name) for name in NAMES.values())}
    default = AutoConfig.for_model(config.model_type).to_dict()
    settings = {
        name: value
        for name, value in config.to_dict().items()
        if name in default and name not in taken | IRRELEVANT
    }
    return {**sizes, "config": config.model_type, "settings": settings}
