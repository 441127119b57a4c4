"""Names of boards that tell those of one list apart, and say no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.record import Record
from ..console import counted
from .arguments import argument_pairs
from .grouping import grouped


def board_names(records: Sequence[Record]) -> list[str]:
    """The name of each record's board: its title and dtype, unless that is float32.

    Equal names are followed by the arguments that differ, then by the numbers of prompts, the
    task's version and the seed of the evaluation.
    """
    mains = [record.main for record in records]
    dtypes = [record.spec.dtype for record in records]
    names = [
        main.title if dtype == "float32" else f"{main.title} {dtype}"
        for main, dtype in zip(mains, dtypes, strict=True)
    ]
    differing = differing_arguments(names, [main.task_args for main in mains])
    names = told_apart(names, [argument_pairs(args) for args in differing], " ")
    names = told_apart(names, [counted(main.prompts, "prompt") for main in mains], " ")
    names = told_apart(names, [f"version {record.spec.task_version}" for record in records], " ")
    return told_apart(names, [f"evaluation seed {r.spec.eval_seed}" for r in records], " ")


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
    names: Sequence[object], arguments: Sequence[Mapping[str, Any]], absent: str = ""
) -> list[dict[str, Any]]:
    """Each one's arguments that not all of its name have.

    An argument that begins with `absent` differs where others lack it; any other argument differs
    only from another value.
    """
    members = grouped(zip(names, arguments, strict=True), lambda pair: pair[0])
    differing = {name: _differing([a for _, a in pairs], absent) for name, pairs in members.items()}
    return [
        {key: value for key, value in args.items() if key in differing[name]}
        for name, args in zip(names, arguments, strict=True)
    ]


def _differing(arguments: Sequence[Mapping[str, Any]], absent: str) -> set[str]:
    def differs(key: str) -> bool:
        first, *others = [a.get(key) for a in arguments if key in a or key.startswith(absent)]
        return any(value != first for value in others)

    return set(filter(differs, {key for args in arguments for key in args}))
