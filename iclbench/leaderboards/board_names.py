"""Names of boards that tell those of one list apart, and say no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.record import Record
from ..console import counted
from . import formats


def board_names(records: Sequence[Record]) -> list[str]:
    """The name of each record's board: its title and dtype, unless that is float32.

    Equal names are followed by the arguments that differ, and then by the numbers of prompts.
    """
    mains = [record.main for record in records]
    dtypes = [record.spec.dtype for record in records]
    names = [
        main.title if dtype == "float32" else f"{main.title} {dtype}"
        for main, dtype in zip(mains, dtypes, strict=True)
    ]
    differing = differing_arguments(names, [main.task_args for main in mains])
    names = told_apart(names, [formats.arguments(args) for args in differing], " ")
    return told_apart(names, [counted(main.prompts, "prompt") for main in mains], " ")


def told_apart(names: Sequence[str], parts: Sequence[str], separator: str = ", ") -> list[str]:
    """The names, followed by their parts where equal names have different ones."""
    parts_of: dict[str, set[str]] = {}
    for name, part in zip(names, parts, strict=True):
        parts_of.setdefault(name, set()).add(part)
    return [
        f"{name}{separator}{part}" if part and len(parts_of[name]) > 1 else name
        for name, part in zip(names, parts, strict=True)
    ]


def differing_arguments(
    names: Sequence[str], arguments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Each one's arguments that not all of its name have."""
    alike = [[a for a, n in zip(arguments, names, strict=True) if n == name] for name in names]
    return [
        {k: v for k, v in own.items() if any(args.get(k) != v for args in others)}
        for own, others in zip(arguments, alike, strict=True)
    ]
