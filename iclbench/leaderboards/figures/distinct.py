"""Curves of several records that would have one name get more fields in their names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.record import Record
from ...sweeps.fields import field_of
from ...sweeps.figure import NOT_FIELDS, Figure
from .panels import drawn, label_of

#: The fields that are tried first: records of one model mostly differ in their weights.
_FIRST = ("weights", "init", "origin", "dtype", "budget", "seeds")
_GROUPS = ("model_args", "weights_args", "task_args", "recipe_args")


def with_distinct_lines(figure: Figure, records: Sequence[Record]) -> Figure:
    """The figure, with fields in `lines` that give each curve of a panel a name of its own.

    Only where each record is a curve: otherwise, records of one name are points of one line. A
    field that tells no records apart is not added, so most figures stay as they are.
    """
    if figure.x not in NOT_FIELDS:
        return figure
    records = drawn(figure, records)
    while clashing := _clashing(figure, records):
        wider = [
            figure.model_copy(update={"lines": (*figure.lines, name)})
            for name in _differing(clashing)
            if name not in {*figure.lines, *figure.panels}
        ]
        # The first of those that leave the fewest.
        best = min(wider, key=lambda other: len(_clashing(other, records)), default=figure)
        if len(_clashing(best, records)) == len(clashing):
            break
        figure = best
    return figure


def _clashing(figure: Figure, records: Sequence[Record]) -> list[Record]:
    """The records that share their panel and the name of their line with another."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        key = label_of(figure.panels, record), label_of(figure.lines, record)
        groups.setdefault(key, []).append(record)
    return [record for members in groups.values() if len(members) > 1 for record in members]


def _differing(records: Sequence[Record]) -> Iterable[str]:
    """The fields whose values differ among these records, those that are tried first before all."""
    arguments = sorted(
        {f"{group}.{key}" for r in records for group in _GROUPS for key in getattr(r.spec, group)}
    )
    for name in (*_FIRST, *arguments):
        if len({str(field_of(record, name)) for record in records}) > 1:
            yield name
