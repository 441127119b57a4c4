"""Fields of a run's spec by dotted names, as figures and findings give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator

from ..api.errors import UsageError, unknown
from ..api.record import Record
from ..api.spec import ResolvedSpec

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
    return content.get(key) if key else content
