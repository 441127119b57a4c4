"""The arguments that a recipe sets by name, for whatever model or task has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from ..api.config import Config, ConfigT, parse_config
from ..api.errors import UsageError, reason_of


def split_by_use(
    values: Mapping[str, Any], config: type[Config], given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """A recipe's arguments that a configuration takes, and why it refuses others of its names.

    An argument may have another meaning in a model that the recipe's author did not know, which
    then refuses its value, whatever else is set. One that clashes only with what the user has
    `given` is not left out, since then the user must choose.
    """
    known = {
        name: value
        for name, value in values.items()
        if name in config.model_fields and name not in given
    }
    # Without its required arguments, a configuration refuses everything.
    alone = {} if refusal(config, {}) is None else given
    if refusal(config, {**given, **known}) is None or refusal(config, alone) is not None:
        return known, {}
    refused = {
        name: reason
        for name, value in known.items()
        if (reason := refusal(config, {**alone, name: value})) is not None
    }
    taken = {name: value for name, value in known.items() if name not in refused}
    for name in list(refused):
        # It may need the others, as heads need a width that they divide.
        reason = refusal(config, {**given, **taken, name: known[name]})
        if reason is None:
            taken[name] = known[name]
            del refused[name]
        else:
            refused[name] = reason
    return taken, refused


def config_with(
    config: type[ConfigT],
    of_recipe: tuple[str, Mapping[str, Any]],
    given: Mapping[str, Any],
    owner: str,
) -> ConfigT:
    """Return the configuration of what a recipe, by its name, sets and of what the user has given.

    Raises UsageError, which names the recipe's arguments unless what is given clashes by itself.
    """
    name, values = of_recipe
    try:
        return parse_config(config, {**values, **given}, owner)
    except UsageError as error:
        # By its clauses: without the recipe, an argument that it sets may be missing, too.
        clauses = set(reason_of(error).removeprefix(f"{owner}: ").split("; "))
        if not values or clauses <= set((refusal(config, given) or "").split("; ")):
            raise
        pairs = ", ".join(f"{key}={value}" for key, value in values.items())
        hint = f"recipe {name} sets {pairs}; --model-args overrides them"
        raise UsageError(f"{error} ({hint})") from None


def refusal(config: type[BaseModel], values: Mapping[str, Any]) -> str | None:
    """Why a configuration refuses these values, or None."""
    try:
        parse_config(config, values, "model")
    except UsageError as error:
        return reason_of(error).removeprefix("model: ")
    return None
