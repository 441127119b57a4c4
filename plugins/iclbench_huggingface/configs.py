"""Configurations of transformers from the model's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import AutoConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from iclbench import UsageError, unknown

#: Arguments by the names that transformers gives them in every configuration.
NAMES = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "init_std": "initializer_range",
}
#: Names of the MLP's width.
FEED_FORWARD = ("intermediate_size", "ffn_dim", "dff", "d_inner")
#: The most positions that `settings` may ask for: some types hold a mask of their square.
MOST_POSITIONS = 8192
#: Ids of a vocabulary that is not used.
SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")


def config_of(length: int, args: Any) -> Any:
    """Return the configuration of a causal model for `length` positions.

    Unless `settings` say otherwise, the MLP has 4 times the width, there is no dropout, keys and
    values have as many heads as queries, and the number of positions is `length`. Raises
    UsageError for an unknown type or field, for a field that is an argument of the model, for too
    many positions, and for values that the type refuses.
    """
    if args.config not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise unknown("config", args.config, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    default = AutoConfig.for_model(args.config)
    arguments = {default.attribute_map.get(name, name): key for key, name in NAMES.items()}
    for name in args.settings:
        if not hasattr(default, name):
            raise unknown(f"field of {args.config}'s config", name, vars(default))
        argument = arguments.get(default.attribute_map.get(name, name))
        if argument is not None:
            raise UsageError(f"huggingface: {name} is the model's argument {argument}: set that")
        _require_few_positions(default.attribute_map.get(name, name), args.settings[name], length)
    for name in ("hidden_size", "num_hidden_layers"):
        if not hasattr(default, name):
            raise UsageError(f"huggingface: the config of {args.config} has no {name}")
    given = {name: getattr(args, key) for key, name in NAMES.items() if hasattr(default, name)}
    values: dict[str, Any] = {}
    for part in (_following(default, length, args), given, args.settings):
        # A type may call a size otherwise, as gpt2 calls its positions n_positions.
        values |= {default.attribute_map.get(name, name): value for name, value in part.items()}
    return built(AutoConfig.for_model, args.config, **values)


def _require_few_positions(field: str, value: Any, length: int) -> None:
    most = max(length, MOST_POSITIONS)
    if "position" in field and isinstance(value, int) and value > most:
        raise UsageError(f"huggingface: {field}={value:,} is too large; at most {most:,}")


def _following(default: Any, length: int, args: Any) -> dict[str, Any]:
    """Return the fields of a configuration that follow from the model's arguments."""
    sizes = {
        "max_position_embeddings": length,
        **dict.fromkeys(_feed_forward(default), 4 * args.width),
        "num_key_value_heads": args.heads,
        "head_dim": args.width // args.heads,
        "rotary_dim": args.width // args.heads,
        "embedding_size": args.width,
    }
    values = {name: size for name, size in sizes.items() if _is_number(default, name)}
    values |= dict.fromkeys(dropouts_of(default), 0.0)
    # The harness embeds prompts, so the model has no vocabulary of its own.
    values |= {name: None for name in SPECIAL_IDS if hasattr(default, name)}
    values["vocab_size"] = 1
    values |= {"is_decoder": True} if hasattr(default, "is_decoder") else {}
    return {**values, "use_cache": False}


def dropouts_of(config: Any) -> list[str]:
    """Return the names of a configuration's rates of dropout."""
    return [n for n, v in vars(config).items() if "drop" in n and isinstance(v, float)]


def _feed_forward(default: Any) -> tuple[str, ...]:
    """Return the names that the MLP's width may have in a configuration of this type."""
    expand, width = getattr(default, "expand", None), getattr(default, "intermediate_size", None)
    if expand is None or width != expand * default.hidden_size:
        return FEED_FORWARD
    # mamba and falcon_mamba compute their inner width from `expand`, under this name.
    return tuple(name for name in FEED_FORWARD if name != "intermediate_size")


def built(make: Any, *args: Any, **values: Any) -> Any:
    """Call a function of transformers; raises UsageError with the reason of its error."""
    with silence():
        try:
            return make(*args, **values)
        except Exception as error:
            reason = reason_of(error)
            raise UsageError(f"huggingface: transformers refuses this config: {reason}") from error


def reason_of(error: Exception) -> str:
    """Return an error's type and the first line of its message, or two if that ends in a colon."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    return ": ".join(filter(None, [type(error).__name__, message]))


@contextmanager
def silence() -> Iterator[None]:
    """Within the block, transformers reports no progress, no warnings and nothing left out."""
    verbosity, progress = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if progress:
            logging.enable_progress_bar()


def _is_number(config: Any, name: str) -> bool:
    """Whether a field holds an integer that can be set; some types compute one."""
    computed = isinstance(getattr(type(config), name, None), property)
    return not computed and isinstance(getattr(config, name, None), int)
