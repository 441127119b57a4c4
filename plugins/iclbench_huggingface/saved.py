"""Models saved by transformers, read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn
from transformers import AutoConfig, AutoModel

from .backbone import without_pooler
from .configs import NAMES, SPECIAL_IDS, built, dropouts_of

#: Fields of a saved configuration that say nothing about the layers, or that are always the same.
IRRELEVANT = {
    *("architectures", "dtype", "model_type", "transformers_version", "chunk_size_feed_forward"),
    *("id2label", "label2id", "problem_type", "is_decoder", "is_encoder_decoder", "use_cache"),
    *("output_attentions", "output_hidden_states", "return_dict", "tie_word_embeddings"),
    *("vocab_size", *SPECIAL_IDS),
}


def saved_layers(folder: Path) -> Any:
    """Return the model in a folder, without its table of ids; raises UsageError."""
    # Else a folder with code of its own has transformers ask whether to run it.
    trust = {"trust_remote_code": False}
    model = built(AutoModel.from_pretrained, folder, local_files_only=True, **trust)
    model.set_input_embeddings(nn.Identity())
    return without_pooler(model)


def arguments_of(config: Any) -> dict[str, Any]:
    """Return the model's arguments that build a model of this saved configuration.

    It has no dropout, as every model here unless its `settings` say otherwise.
    """
    sizes = {key: getattr(config, name) for key, name in NAMES.items() if hasattr(config, name)}
    taken = {
        *dropouts_of(config),
        *NAMES.values(),
        *(config.attribute_map.get(name) for name in NAMES.values()),
    }
    default = AutoConfig.for_model(config.model_type).to_dict()
    settings = {
        name: value
        for name, value in config.to_dict().items()
        if name in default and name not in taken | IRRELEVANT
    }
    return {**sizes, "config": config.model_type, "settings": settings}
