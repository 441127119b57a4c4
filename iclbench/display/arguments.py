"""Arguments of entries as a person reads them: what a value may be, and its default."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ..api.recipe import Recipe
from ..leaderboards.arguments import argument
from .table import Column, Table

_WORDS = {
    bool: "true or false",
    int: "integer",
    float: "number",
    str: "text",
    type(None): "null",
    dict: "table",
    list: "list",
    tuple: "list",
}
_BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}

#: The settings of a recipe that every summary names.
_MAIN = ("steps", "batch", "optimizer", "learning_rate")


def kind_of(annotation: Any) -> str:
    """What a value of this type is, in words: `integer`, `softmax | linear`, `number or null`."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(str(value) for value in inner)
    if origin is typing.Annotated:
        return kind_of(inner[0])
    if origin in {Union, types.UnionType}:
        return " or ".join(kind_of(part) for part in inner)
    if origin in {list, tuple, set, frozenset}:
        parts = {kind_of(part) for part in inner if part is not ...}
        return f"list of {' and '.join(sorted(parts))}" if parts else "list"
    if origin is not None:
        return _WORDS.get(origin, getattr(origin, "__name__", str(origin)))
    return _WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def default_of(field: Any) -> str:
    """The default as it is written on the command line; `required` where there is none."""
    if field.is_required():
        return "required"
    return written(field.get_default(call_default_factory=True))


def written(value: Any) -> str:
    """A value as it is written on the command line."""
    return '""' if value == "" else argument(value)


def arguments_table(config: type[BaseModel], title: str) -> Table:
    """One line per argument: what it may be, its default, and what it means."""
    rows = []
    for name, field in config.model_fields.items():
        bounds = [
            f"{sign} {getattr(rule, key):g}"
            for rule in field.metadata
            for key, sign in _BOUNDS.items()
            if getattr(rule, key, None) is not None
        ]
        kind = ", ".join([kind_of(field.annotation), *bounds])
        rows.append({
            "argument": name,
            "value": kind,
            "default": default_of(field),
            "meaning": field.description or "",
        })  # fmt: skip
    columns = (
        Column("argument"),
        Column("value", fit="wrap"),
        Column("default", fit="wrap"),
        Column("meaning", fit="wrap"),
    )
    return Table(columns, rows, title=title)


def changed(recipe: Recipe) -> dict[str, Any]:
    """The settings of a recipe that are not the defaults, the main ones first."""
    values = recipe.model_dump()
    defaults = {name: field.default for name, field in Recipe.model_fields.items()}
    others = [name for name in values if name not in _MAIN and values[name] != defaults[name]]
    return {name: values[name] for name in (*_MAIN, *others)}


def recipe_summary(recipe: Recipe) -> str:
    """A recipe in a line: steps × batch, the optimizer with its rate, the schedule."""
    return (
        f"{recipe.steps:,} steps × {recipe.batch:,} prompts, {recipe.optimizer} "
        f"{recipe.learning_rate:g}, {recipe.schedule}"
    )


def settings_table(values: Mapping[str, Any], meanings: type[BaseModel], title: str = "") -> Table:
    """One line per setting, with its value and what it means."""
    rows = [
        {
            "setting": name,
            "value": written(value),
            "meaning": meanings.model_fields[name].description or "",
        }
        for name, value in values.items()
    ]
    columns = (Column("setting"), Column("value", fit="wrap"), Column("meaning", fit="wrap"))
    return Table(columns, rows, title=title)


def facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    """Facts by their names."""
    rows = [{"fact": name, "value": value} for name, value in facts if value]
    return Table((Column("fact"), Column("value", fit="wrap")), rows, head=False)
