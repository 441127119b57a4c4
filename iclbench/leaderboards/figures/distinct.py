"""Records that a figure would show as one line, though they are several, get names of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...api.errors import UsageError
from ...api.record import Record
from ...sweeps.fields import ARGUMENTS, STATE, field_of
from ...sweeps.figure import NOT_FIELDS, Figure
from ..grouping import grouped
from .panels import drawn, label_of
from .references import is_numeric

#: The most lines of a panel: more have no colors and dashes of their own.
MOST_LINES = 120

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
    field that tells no records apart is not added, so most figures stay as they are. Raises
    UsageError for more lines than a panel can show.
    """
    search = _Search(figure, drawn(figure, records))
    lines = figure.lines
    while clashing := search.clashing(lines):
        wider = [
            (*lines, name)
            for name in search.differing(clashing)
            if name not in {*lines, *figure.panels, figure.x}
        ]
        if not search.at_one_place(lines):
            # The points of a line stay together.
            count = len(search.points_by_line(lines))
            wider = [w for w in wider if len(search.points_by_line(w)) == count]
        # The first of those that leave the fewest, on the fewest lines.
        best = min(
            wider,
            key=lambda w: (len(search.clashing(w)), len(search.points_by_line(w))),
            default=lines,
        )
        if len(search.clashing(best)) == len(clashing):
            # In a grid of two settings, neither of them gives a line a name that no other has.
            best = min(wider, key=search.missing_names, default=lines)
        if search.missing_names(best) == search.missing_names(lines):
            break
        lines = best
        search.require_few(lines)
    search.require_few(lines)
    return figure if lines == figure.lines else figure.model_copy(update={"lines": lines})


class _Search:
    """The records of a figure by their index, each of whose labels is made once."""

    def __init__(self, figure: Figure, records: Sequence[Record]) -> None:
        self.records, self._labels = records, dict[str, list[str]]()
        self._by_line = dict[tuple[str, ...], dict[tuple[str, str], list[int]]]()
        self._panels = [label_of(figure.panels, record) for record in records]
        self.points, self.curves = list[int](), [*range(len(records))]
        if figure.x in NOT_FIELDS:
            return
        self._x = [field_of(record, str(figure.x)) for record in records]
        self._is_numeric = is_numeric([x for x in self._x if x is not None])
        self.points, self.curves = self.curves, []
        if figure.x != STATE and self._is_numeric:
            # Where the x axis shows numbers, those without one are lines of reference.
            self.points = [i for i, x in enumerate(self._x) if x is not None]
            self.curves = [i for i, x in enumerate(self._x) if x is None]

    def clashing(self, lines: tuple[str, ...]) -> list[int]:
        """The curves that share their panel and name with another line, and that line's records.

        And the points of a line that are not the only one at their x.
        """
        points, curves = self.points_by_line(lines), self.groups(lines, self.curves)
        return self.at_one_place(lines) + [
            index
            for name, members in curves.items()
            if len(members) > 1 or name in points
            for index in [*members, *points.get(name, ())]
        ]

    def missing_names(self, lines: tuple[str, ...]) -> int:
        """How many curves and points would still need a name or a place of their own."""
        points = self.points_by_line(lines)
        names = {*self.groups(lines, self.curves)} - {*points}
        places = {(name, str(self._x[i])) for name, group in points.items() for i in group}
        crowded = len(self.points) - len(places) if self.at_one_place(lines) else 0
        return len(self.curves) - len(names) + crowded

    def at_one_place(self, lines: tuple[str, ...]) -> list[int]:
        """The points that share their line and their x with another, where x is a number."""
        clashing: list[int] = []
        if not self.points or not self._is_numeric:
            return clashing
        for members in self.points_by_line(lines).values():
            places = grouped(members, lambda index: str(self._x[index]))
            clashing += [i for group in places.values() if len(group) > 1 for i in group]
        return clashing

    def points_by_line(self, lines: tuple[str, ...]) -> dict[tuple[str, str], list[int]]:
        """The points by their panel and the name of their line; asked for again and again."""
        if lines not in self._by_line:
            self._by_line[lines] = self.groups(lines, self.points)
        return self._by_line[lines]

    def groups(
        self, lines: tuple[str, ...], indices: Iterable[int]
    ) -> dict[tuple[str, str], list[int]]:
        """The records by their panel and the name of their line."""
        columns = [self._column(name) for name in lines]

        def key(index: int) -> tuple[str, str]:
            # As `label_of` joins them.
            name = " ".join(filter(None, (column[index] for column in columns)))
            return self._panels[index], name or (self.records[index].spec.model if lines else "")

        return grouped(indices, key)

    def differing(self, indices: Sequence[int]) -> Iterable[str]:
        """The fields whose values differ among these records, in the order of trying them."""
        specs = [self.records[index].spec for index in indices]
        arguments = {
            f"{group}.{key}"
            for spec in specs
            for group in ARGUMENTS
            for key in getattr(spec, group)
        }
        for name in (*_FIRST, *sorted(arguments)):
            if len({self._column(name)[index] for index in indices}) > 1:
                yield name

    def require_few(self, lines: tuple[str, ...]) -> None:
        """Raise UsageError for more lines than a panel can show."""
        names = self.groups(lines, range(len(self.records)))
        ((_, count),) = Counter(panel for panel, _ in names).most_common(1) or [("", 0)]
        if count > MOST_LINES:
            raise UsageError(
                f"figure: a panel would have {count} lines of {len(self.records)} records, and at "
                f"most {MOST_LINES} can be read: give fewer records, or panels"
            )

    def _column(self, name: str) -> list[str]:
        """Each record's label of a field; empty for one without it."""
        if name not in self._labels:
            self._labels[name] = [
                "" if field_of(record, name) is None else label_of((name,), record)
                for record in self.records
            ]
        return self._labels[name]
