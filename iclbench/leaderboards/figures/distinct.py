"""Records that a figure would show as one line, though they are several, get names of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.record import Record
from ...sweeps.fields import ARGUMENTS, STATE, field_of
from ...sweeps.figure import NOT_FIELDS, Figure
from ..grouping import grouped
from .panels import drawn, label_of
from .references import is_numeric

#: The fields that are tried first: most lines name the model, whose records mostly differ in their
#: weights.
_FIRST = (
    "model",
    "weights",
    "init",
    "origin",
    "dtype",
    "budget",
    "seeds",
    "eval_prompts",
    "eval_seed",
    "grader",
)


def with_distinct_lines(figure: Figure, records: Sequence[Record]) -> Figure:
    """The figure, with fields in `lines` that give each curve of a panel a name of its own.

    A record is a curve, a line of reference, or a point of a line, which has one point at each x. A
    field that tells no records apart is not added, so most figures stay as they are.
    """
    points, curves = _points_and_curves(figure, drawn(figure, records))
    while clashing := _clashing(figure, points, curves):
        wider = [
            figure.model_copy(update={"lines": (*figure.lines, name)})
            for name in _differing(clashing)
            if name not in {*figure.lines, *figure.panels, figure.x}
        ]
        if not _at_one_place(figure, points):
            # The points of a line stay together.
            wider = [f for f in wider if len(_groups(f, points)) == len(_groups(figure, points))]
        # The first of those that leave the fewest, on the fewest lines.
        best = min(
            wider,
            key=lambda f: (len(_clashing(f, points, curves)), len(_groups(f, points))),
            default=figure,
        )
        if len(_clashing(best, points, curves)) == len(clashing):
            break
        figure = best
    return figure


def _points_and_curves(figure: Figure, records: list[Record]) -> tuple[list[Record], list[Record]]:
    """The records that are points of lines, and those that are a line each.

    Where the x axis shows numbers, those without one are lines of reference.
    """
    if figure.x in NOT_FIELDS:
        return [], records
    placed = [(field_of(record, str(figure.x)), record) for record in records]
    if figure.x == STATE or not is_numeric([x for x, _ in placed if x is not None]):
        return records, []
    points = [record for x, record in placed if x is not None]
    return points, [record for x, record in placed if x is None]


def _clashing(figure: Figure, points: Sequence[Record], curves: Sequence[Record]) -> list[Record]:
    """The curves that share their panel and name with another line, and what they share it with.

    And the points of a line that are not the only one at their x.
    """
    lines, groups = _groups(figure, points), _groups(figure, curves)
    return _at_one_place(figure, points) + [
        record
        for name, members in groups.items()
        if len(members) > 1 or name in lines
        for record in [*members, *lines.get(name, ())]
    ]


def _at_one_place(figure: Figure, points: Sequence[Record]) -> list[Record]:
    """The points that share their line and their x with another, where x is a number."""
    clashing: list[Record] = []
    if not is_numeric([x for x in (field_of(r, str(figure.x)) for r in points) if x is not None]):
        return clashing
    for members in _groups(figure, points).values():
        places = grouped(members, lambda record: str(field_of(record, str(figure.x))))
        clashing += [r for group in places.values() if len(group) > 1 for r in group]
    return clashing


def _groups(figure: Figure, records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """The records by their panel and the name of their line."""
    return grouped(records, lambda r: (label_of(figure.panels, r), label_of(figure.lines, r)))


def _differing(records: Sequence[Record]) -> Iterable[str]:
    """The fields whose values differ among these records, those that are tried first before all."""
    arguments = sorted(
        {f"{group}.{key}" for r in records for group in ARGUMENTS for key in getattr(r.spec, group)}
    )
    for name in (*_FIRST, *arguments):
        if len({str(field_of(record, name)) for record in records}) > 1:
            yield name
