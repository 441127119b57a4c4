"""Platforms: what decides the last bits of a training, besides its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..api.names import visible
from ..api.record import Environment

#: A platform's values by name, as JSON has them.
Platform = dict[str, str | int | None]

#: Packages that no training computes with, or whose version its code tells.
UNUSED = frozenset({"iclbench", "scipy"})
#: How the note of a training on several platforms ends, followed by what differed.
MOVED = "not all on one platform"
_BETWEEN = f"{MOVED}: other "
#: The most characters of a training's note.
MOST_NOTE = 500


def platform_of(machine: Environment, program: str, replicas: int) -> Platform:
    """The platform of a training whose program computes the gradients of `replicas` at once."""
    versions = {name: machine.versions[name] for name in machine.versions if name not in UNUSED}
    return {
        "device": machine.device,
        "processor": machine.processor,
        "threads": machine.threads,
        **versions,
        "program": program,
        "number of replicas": replicas,
    }


def differing_names(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names of the values that both platforms have and that differ."""
    return [name for name in now if name in before and before[name] != now[name]]


def moved_names(note: str | None) -> list[str]:
    """What differed between the platforms of a training, according to its note."""
    names = (note or "").partition(_BETWEEN)[2]
    return names.split(", ") if names else []


def with_moves(note: str | None, names: Sequence[str]) -> str | None:
    """A training's note, with these names added to those of what differed between platforms.

    The result is at most as long as a record allows; the names stay whole.
    """
    before = (note or "").partition(_BETWEEN)[0].removesuffix("; ")
    names = list(dict.fromkeys([*moved_names(note), *names]))
    move = _BETWEEN + ", ".join(names) if names else ""
    if before and move:
        move = f"; {move}"
    return visible(before, MOST_NOTE - len(move)) + move or None
