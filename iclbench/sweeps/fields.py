"""Fields of a run's spec by dotted names, as figures and findings give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, TypeAdapter

from ..api.errors import PluginError, UsageError, unknown
from ..api.recipe import Recipe
from ..api.record import Record
from ..api.spec import ResolvedSpec
from ..plugins import host

#: The state that a layer keeps after a prompt, in bytes, which a record tells and no spec.
STATE = "state_bytes"

#: The fields of a spec that hold arguments, which are named by `model_args.layers`.
ARGUMENTS = tuple(name for name in ResolvedSpec.model_fields if name.endswith("_args"))


def _names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    is_list = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not is_list or not all(names):
        raise ValueError("a name or a list of names is needed")
    return tuple(names)


def _table(value: Any) -> Any:
    if not isinstance(value, Mapping | BaseModel):
        raise ValueError("a table is needed")
    return value


#: Names, of which a file may give a single one without a list. Pydantic's own errors speak of
#: Python's types.
Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
#: Marks a field that a TOML file writes as a table.
IS_TABLE = BeforeValidator(_table)


def tables_named(path: str) -> BeforeValidator:
    """Requires a list of tables, which a file writes as [[PATH]], such as [[stage.sweep]]."""
    name = path.rpartition(".")[2]

    def require_list(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"a list is needed: each {name} is a table [[{path}]]")
        return value

    return BeforeValidator(require_list)


_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


def require_field(name: str, also: tuple[str, ...] = ()) -> None:
    """Raise ValueError unless `name` is a field, an argument in a field of those, or in `also`."""
    group, _, key = name.partition(".")
    known = [STATE, *also, *ResolvedSpec.model_fields]
    if group not in known:
        raise ValueError(str(unknown("field", group, known)))
    if "." in name and group not in ARGUMENTS:
        raise ValueError(f"{group} has no fields (got {name!r})")
    if "." in name and not key:
        raise ValueError(f"{name!r} names no argument")


def field_of(record: Record, name: str) -> Any:
    """The value of a field, or of an argument; None if this record has none.

    An argument that a spec omits since it has its default has that default.

    Raises UsageError for a name that `require_field` refuses.
    """
    try:
        require_field(name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if name == STATE:
        return record.state_bytes
    group, _, key = name.partition(".")
    content = getattr(record.spec, group)
    if not key:
        # As in a TOML file, which `where` and `lacks` are read from.
        return list(content) if isinstance(content, tuple) else content
    return content[key] if key in content else omitted_arguments(record.spec, group).get(key)


def omitted_arguments(spec: ResolvedSpec, group: str) -> dict[str, Any]:
    """The arguments of a group that the spec omits since they have their defaults.

    See `added_later`. They are unknown, so there are none, where the plugin is not installed.
    """
    config = _config(spec, group)
    defaults = {
        name: field.get_default()
        for name, field in (config.model_fields.items() if config else ())
        if field.exclude_if is not None and name not in getattr(spec, group)
    }
    return {name: _ANYTHING.dump_python(v, mode="json") for name, v in defaults.items()}


def _config(spec: ResolvedSpec, group: str) -> type[BaseModel] | None:
    """The configuration whose values a group of arguments holds, or None."""
    if group == "recipe_args":
        return Recipe if spec.recipe else None
    named = {"task_args": ("task", spec.task), "grader_args": ("grader", spec.grader)}
    kind, name = named.get(group, ("model", spec.model))
    if name is None:
        return None
    try:
        _, owner = host().target(kind, name)
    except (UsageError, PluginError):  # it is not installed, or broken
        return None
    if group == "weights_args":
        owner = getattr(owner, "constructions", {}).get(spec.weights)
    return getattr(owner, "Config", None)
