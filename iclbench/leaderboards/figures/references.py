"""Lines of reference: models without the argument that a figure's x axis varies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...api.names import is_number
from .line import Line


def with_references(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines, where a point without an x becomes a horizontal line over the whole axis.

    A floor has none: those of the other lines are drawn. Without any x, the lines stay.
    """
    ends = _ends(lines)
    return tuple(part for line in lines for part in _parts(line, ends)) if ends else tuple(lines)


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether all of them are numbers."""
    return all(map(is_number, values))


def _ends(lines: Sequence[Line]) -> list[Any]:
    """The first and last x of an axis, which may be the same."""
    xs = list(dict.fromkeys(x for line in lines for x in line.x if x is not None))
    ordered = sorted(xs) if is_numeric(xs) else xs
    return list(dict.fromkeys([*ordered[:1], *ordered[-1:]]))


def _parts(line: Line, ends: list[Any]) -> Iterator[Line]:
    known = [i for i, x in enumerate(line.x) if x is not None]
    if len(known) == len(line.x):
        yield line
        return
    if known:
        above, below = (
            None if side is None else [side[i] for i in known] for side in (line.above, line.below)
        )
        x, y = ([values[i] for i in known] for values in (line.x, line.y))
        yield replace(line, x=x, y=y, above=above, below=below)
    if line.floor:
        return
    mode = "lines" if len(ends) > 1 else "markers"
    for x, level in zip(line.x, line.y, strict=True):
        if x is None:
            ys = [level] * len(ends)
            yield Line(line.group, line.name, ends, ys, mode, reference=True)
