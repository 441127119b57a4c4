"""Configurations: pydantic models whose errors read as one line with the nearest field."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import UsageError


class Config(BaseModel):
    """Base of every configuration: unknown fields are refused, values are immutable and finite."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _bool_is_no_number(cls, values: Any) -> Any:
        # pydantic takes true for 1: `layers=true` would train one layer.
        for name, value in values.items() if isinstance(values, dict) else ():
            kind = cls.model_fields[name].annotation if name in cls.model_fields else None
            if isinstance(value, bool) and kind in (int, float):
                raise ValueError(f"{name}: a number is needed (got {value})")
        return values


def added_later(default: Any, **options: Any) -> Any:
    """A pydantic Field that a dump leaves out at its default.

    For a field that is added to what enters a run's id: runs that don't use it keep theirs.
    """
    return Field(default, exclude_if=lambda value: value == default, **options)


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
        hint = hint if known else "there are none"
        return f"unknown field {where!r}; {hint}"
    message = detail["msg"].removeprefix("Value error, ")
    if not where:
        return str(message)
    return f"{where}: {message[0].lower()}{message[1:]} (got {detail['input']!r})"
