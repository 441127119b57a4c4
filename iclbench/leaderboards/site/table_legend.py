"""What the marks in a table of a task's page mean: only those that it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .. import formats
from ..board import Board
from ..bounds import bounds_mark
from ..note_legend import note_legend
from ..rank_legend import rank_legend
from ..row import Row

#: The name of each origin's mark.
_ORIGINS = dict(text.split(" ", 1) for text in formats.LEGEND.split(" · "))
#: What each kind of interval's mark means.
_BOUNDS = dict(text.split(" ", 1) for text in formats.BOUNDS_LEGEND.split(" · "))


def legend(boards: Sequence[Board]) -> list[tuple[str, str]]:
    """Each mark or word in the table of these boards, with what it means."""
    rows = [row for board in boards for row in board.rows]
    trained = [row for row in rows if row.is_trained]
    return [
        *((mark, name) for mark, name in _ORIGINS.items() if mark in formats.marks(rows)),
        *rank_legend(trained),
        *_of_intervals(rows),
        *note_legend(rows, stale=False),
        *_of_seeds(trained),
    ]


def _of_intervals(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    marks = "".join(bounds_mark(row.bounds, row.seeds) + row.mark_above for row in rows)
    yield from ((mark, text) for mark, text in _BOUNDS.items() if mark in marks)


def _of_seeds(rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    if any(row.fewer_seeds for row in rows):
        yield "fewer", "another row of the track has more seeds"
