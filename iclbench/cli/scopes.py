"""Arguments of one of several models or tasks: `NAME.key=value`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..api.errors import UsageError
from ..api.spec import RunSpec, flag
from ..plugins import host

#: How the errors of a request's fields begin, whatever the verb.
OWNER = "options"


def scoped(args: dict[str, Any], name: str, names: list[str], option: str) -> dict[str, Any]:
    """The arguments that apply to `name`: `key` to all names, `NAME.key` to one of them.

    Raises UsageError for the arguments of a name that is not run.
    """
    applying = {key: value for key, value in args.items() if "." not in key}
    for key, value in args.items():
        owner, dot, rest = key.partition(".")
        if dot and owner not in names:
            raise UsageError(f"{option}: {key!r} is for {owner!r}, which is not run")
        if dot and owner == name:
            applying[rest] = value
    return applying


@contextmanager
def errors_of_options(
    spec: Mapping[str, Any], models: list[str], tasks: list[str]
) -> Iterator[None]:
    """Name the options of a request `spec` instead of its fields in an error.

    Says how one of several models or tasks is given an argument that another doesn't have.
    """
    try:
        yield
    except UsageError as error:
        if type(error) is not UsageError:  # a subclass decides how the command goes on
            raise
        text = str(error)
        if text.startswith(f"{OWNER}: "):
            raise UsageError(_of_options(text)) from None
        hints = [
            f"; {name}.{key}=VALUE gives it to {name} alone"
            for kind, names in (("model", models), ("task", tasks))
            for key in spec.get(f"{kind}_args", {})
            for name in dict.fromkeys(names)
            if re.match(rf"{kind} \S+: unknown field '{re.escape(key)}'", text)
            and _takes(kind, name, key)
        ]
        raise UsageError("".join([text, *hints[:1]])) from None


def _of_options(text: str) -> str:
    for field in RunSpec.model_fields:
        text = re.sub(rf"(^{OWNER}: |; ){field}(?=: )", rf"\g<1>{flag(field)}", text)
    return text.removeprefix(f"{OWNER}: ")


def _takes(kind: str, name: str, key: str) -> bool:
    """Whether a model or a task has an argument of that name."""
    return key in host().load(kind, name, object).Config.model_fields
