"""Platforms: what decides the last bits of a training, besides its code."""

from __future__ import annotations

from collections.abc import Mapping

from ..api.record import Environment

#: A platform's values by name, as JSON has them.
Platform = dict[str, str | int | None]

#: How the note begins of a training that did not stay on one platform.
MOVED = "continued on another platform"


def platform_of(machine: Environment, program: str, replicas: int) -> Platform:
    """The platform of a training by a program that computes the gradients of so many at once."""
    versions = {name: machine.versions.get(name) for name in ("python", "torch", "numpy")}
    return {
        "device": machine.device,
        "processor": machine.processor,
        "threads": machine.threads,
        **versions,
        "program": program,
        "number of replicas": replicas,
    }


def differing_names(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The names of what two platforms have and in which they differ."""
    return [name for name in now if name in before and before[name] != now[name]]


def note_of_move(before: Mapping[str, object], now: Mapping[str, object]) -> str | None:
    """The note of a training that went on elsewhere; None where the platforms are the same."""
    names = differing_names(before, now)
    return f"{MOVED} (not the same {', '.join(names)})" if names else None
