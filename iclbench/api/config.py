"""Config: pydantic models whose errors are one line and name the nearest field."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from .errors import UsageError
from .names import shown, visible


class Config(BaseModel):
    """Base class of configurations: immutable, no unknown fields, only finite numbers."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=()
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_bool_as_number(cls, values: Any) -> Any:
        # pydantic accepts true as 1, so `layers=true` would train one layer.
        if isinstance(values, dict):
            numbers = _number_fields(cls)
            for name, value in values.items():
                if name in numbers and (given := next(_booleans(value), None)) is not None:
                    raise ValueError(f"{name}: a number is needed (got {given})")
        return values


@functools.cache
def _number_fields(config: type[BaseModel]) -> frozenset[str]:
    """The fields that take numbers, or collections of them, and neither booleans nor models."""
    return frozenset(
        name
        for name, field in config.model_fields.items()
        if {int, float} & (types := set(_types_in(field.annotation)))
        and not any(issubclass(part, bool | BaseModel) for part in types)
    )


def _booleans(value: Any) -> Iterator[bool]:
    """The booleans in a value, and in its lists and dictionaries."""
    if isinstance(value, bool):
        yield value
    elif isinstance(value, dict):
        yield from _booleans(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            # Of long lists of numbers, few calls.
            if isinstance(item, bool | dict | list | tuple):
                yield from _booleans(item)


def _types_in(annotation: Any) -> Iterator[type]:
    """The classes that an annotation such as `list[int | None]` is made of."""
    if isinstance(annotation, type):
        yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


def added_later(default: Any, **options: Any) -> Any:
    """Return a pydantic Field that is omitted from a dump while it has its default.

    Use it for a field added to a published configuration: runs that don't use the field keep their
    ids.
    """
    return Field(default, exclude_if=lambda value: value == default, **options)


ConfigT = TypeVar("ConfigT", bound=BaseModel)


def parse_config(config: type[ConfigT], values: Mapping[str, Any], owner: str) -> ConfigT:
    """Validate `values` as `config`. Raises a UsageError that names `owner` and the field."""
    try:
        return config.model_validate(_plain(dict(values)))
    except RecursionError:
        raise UsageError(f"{owner}: its arguments are nested too deeply") from None
    except ValidationError as error:
        lines = [_explain(detail, config) for detail in error.errors()]
        raise UsageError(f"{owner}: " + "; ".join(lines)) from None


def _plain(value: Any) -> Any:
    """A value with Python's numbers and lists in place of numpy's and torch's."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _explain(detail: Any, config: type[BaseModel]) -> str:
    """Return one of pydantic's errors as a phrase."""
    field = visible(".".join(str(part) for part in detail["loc"]), 100)
    if detail["type"] == "extra_forbidden":
        *path, last = map(str, detail["loc"])
        known = list(dict.fromkeys(n for m in _models_at(config, path) for n in m.model_fields))
        near = difflib.get_close_matches(last, known, n=2, cutoff=0.6)
        hint = f"known: {', '.join(known)}" if known else "there are none"
        if near:
            hint = "did you mean " + " or ".join(map(repr, near)) + "?"
        return f"unknown field {field!r}; {hint}"
    message = detail["msg"].removeprefix("Value error, ")
    if not field:
        return str(message)
    if detail["type"] == "missing":
        return f"{field} is missing"
    given = shown(detail["input"])
    return f"{field}: {message[0].lower()}{message[1:]} (got {given})"


def _models_at(config: type[BaseModel], path: Sequence[str]) -> list[type[BaseModel]]:
    """The models that a path leads to: of fields, indices, keys, and names of a union's models."""
    models = [config]
    for part in path:
        named = [model for model in models if model.__name__ == part]
        fields = [model.model_fields[part] for model in models if part in model.model_fields]
        if named or fields:
            models = named or [model for f in fields for model in _models_in(f.annotation)]
    return models


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in a type such as `list[A | B] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
