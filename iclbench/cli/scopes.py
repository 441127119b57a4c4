"""Arguments of one of several models or tasks: `NAME.key=value`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..api.errors import UnsupportedError, UsageError


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
def explained_scopes(models: list[str], tasks: list[str]) -> Iterator[None]:
    """Say how one of several models or tasks is given an argument that another doesn't have."""
    try:
        yield
    except UnsupportedError:
        raise
    except UsageError as error:
        groups = {"model": models, "task": tasks}
        for kind, names in groups.items():
            of_one = any(str(error).startswith(f"{kind} {name}: unknown field") for name in names)
            if of_one and len(names) > 1:
                raise UsageError(f"{error}; NAME.KEY=VALUE gives it to one {kind}") from None
        raise
