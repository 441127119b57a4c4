"""Arguments of one of several models or tasks: `NAME.key=value`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..api.errors import UsageError
from ..api.spec import RunSpec, flag

#: How the errors of a request's fields begin, whatever the verb.
OWNER = "options: "


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
def errors_of_options(models: list[str], tasks: list[str]) -> Iterator[None]:
    """Name options instead of fields in the error of a request.

    Says how one of several models or tasks is given an argument that another doesn't have.
    """
    try:
        yield
    except UsageError as error:
        if type(error) is not UsageError:  # a subclass decides how the command goes on
            raise
        raise UsageError(_of_options(str(error), models, tasks)) from None


def _of_options(text: str, models: list[str], tasks: list[str]) -> str:
    if text.startswith(OWNER):
        for field in RunSpec.model_fields:
            text = re.sub(rf"(^{OWNER}|; ){field}(?=: )", rf"\g<1>{flag(field)}", text)
        return text.removeprefix(OWNER)
    for kind, names in {"model": models, "task": tasks}.items():
        of_one = any(text.startswith(f"{kind} {name}: unknown field") for name in names)
        if of_one and len(names) > 1:
            return f"{text}; NAME.KEY=VALUE gives it to one {kind}"
    return text
