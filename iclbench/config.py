"""Configurations: pydantic models whose errors read as one line with the nearest field."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from .errors import UsageError


class Config(BaseModel):
    """Base of every configuration: unknown fields are refused, values are immutable and finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


C = TypeVar("C", bound=BaseModel)


def parse_config(config: type[C], values: Mapping[str, Any], owner: str) -> C:
    """Validate `values` as `config`; raise UsageError naming `owner`, the field and the remedy."""
    try:
        return config.model_validate(dict(values))
    except ValidationError as error:
        lines = [_explain(detail, config) for detail in error.errors()]
        raise UsageError(f"{owner}: " + "; ".join(lines)) from None


def _explain(detail: Any, config: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = list(config.model_fields)
        near = difflib.get_close_matches(where, known, n=2, cutoff=0.5)
        hint = "did you mean " + " or ".join(near) if near else "known: " + ", ".join(known)
        return f"unknown field {where!r}; {hint}"
    message = detail["msg"].removeprefix("Value error, ")
    if not where:
        return str(message)
    return f"{where}: {message[0].lower()}{message[1:]} (got {detail['input']!r})"
