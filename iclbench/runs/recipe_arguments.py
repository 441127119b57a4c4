"""The arguments that a recipe sets by name, for whatever model or task has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.config import Config, parse_config
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
    if _refusal(config, {**given, **known}) is None:
        return known, {}
    # Without its required arguments, a configuration refuses everything.
    alone = {} if _refusal(config, {}) is None else given
    if _refusal(config, alone) is not None:
        return known, {}
    refusals = {name: _refusal(config, {**alone, name: value}) for name, value in known.items()}
    refused = {name: reason for name, reason in refusals.items() if reason is not None}
    return {name: value for name, value in known.items() if name not in refused}, refused


def _refusal(config: type[Config], values: Mapping[str, Any]) -> str | None:
    try:
        parse_config(config, values, "")
    except UsageError as error:
        return reason_of(error).removeprefix(": ")
    return None
