"""Configurations of transformers from the model's arguments."""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from iclbench import UsageError, unknown

#: Arguments by the names that transformers gives them in every configuration.
NAMES = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "init_std": "initializer_range",
}
#: Ids of a vocabulary that is not used.
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")


def config_of(length: int, args: Any) -> Any:
    """Return the configuration of a causal model for `length` positions.

    Sizes that follow from others do so unless `settings` say otherwise: the MLP has 4 widths, there
    is no dropout, keys and values have as many heads as queries, and positions suffice for the
    prompt. Raises UsageError for an unknown type or field, and for values that the type refuses.
    """
    if args.config not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise unknown("config", args.config, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    default = AutoConfig.for_model(args.config)
    for name in args.settings:
        if not hasattr(default, name):
            raise unknown(f"field of {args.config}'s config", name, vars(default))
    for name in ("hidden_size", "num_hidden_layers"):
        if not hasattr(default, name):
            raise UsageError(f"huggingface: the config of {args.config} has no {name}")
    given = {name: getattr(args, key) for key, name in NAMES.items() if hasattr(default, name)}
    values: dict[str, Any] = {}
    for part in (_following(default, length, args), given, args.settings):
        # A type may call a size otherwise, as gpt2 calls its positions n_positions.
        values |= {default.attribute_map.get(name, name): value for name, value in part.items()}
    return built(AutoConfig.for_model, args.config, **values)


def _following(default: Any, length: int, args: Any) -> dict[str, Any]:
    """Return the fields of a configuration that follow from the model's arguments."""
    sizes = {
        "max_position_embeddings": length,
        "intermediate_size": 4 * args.width,
        "num_key_value_heads": args.heads,
        "head_dim": args.width // args.heads,
    }
    values = {name: size for name, size in sizes.items() if _is_number(default, name)}
    dropouts = [n for n, v in vars(default).items() if "drop" in n and isinstance(v, float)]
    values |= dict.fromkeys(dropouts, 0.0)
    # The harness embeds prompts, so the model has no vocabulary of its own.
    values |= {name: None for name in SPECIAL_IDS if hasattr(default, name)}
    values["vocab_size"] = 1
    values |= {"is_decoder": True} if hasattr(default, "is_decoder") else {}
    return {**values, "use_cache": False}


def built(make: Any, *args: Any, **values: Any) -> Any:
    """Call a function of transformers; raises UsageError with the first line of its error."""
    try:
        return make(*args, **values)
    except Exception as error:
        reason = first_line(error)
        raise UsageError(f"huggingface: transformers refuses this config: {reason}") from error


def first_line(error: Exception) -> str:
    """Return an error's type and the first line of its message."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])


def _is_number(config: Any, name: str) -> bool:
    return isinstance(getattr(config, name, None), int)
