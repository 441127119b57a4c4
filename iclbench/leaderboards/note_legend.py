"""What is said of a row beside its score, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import formats
from .ranking import NEAR_FLOOR
from .row import Row

#: What is said of a row that is not better than chance.
_CHANCE = {
    "chance": "the model ignores how the examples relate to the query",
    "at chance": "as good as the best row of chance",
    "perhaps at chance": "no significant difference from chance; its interval is wide or unknown",
    "worse than chance": "significantly worse than the best row of chance",
}


def note_legend(rows: Sequence[Row], stale: bool = True) -> Iterator[tuple[str, str]]:
    """Each word that is said of these rows, see `formats.notes`, with what it means."""
    if any(row.at_floor for row in rows):
        text = f"median and 99th percentile are at most {NEAR_FLOOR:g} digit worse than the floor's"
        yield "at the floor", text
    yield from ((word, text) for word, text in _CHANCE.items() if word in {r.chance for r in rows})
    if any(row.lost for row in rows):
        yield "n% lost", "answers that are not finite, or beyond 1,000 times the targets' size"
    if any(row.diverged for row in rows):
        yield "n diverged", "so many seeds were frozen when their loss was no longer finite"
    if any(map(formats.used, rows)):
        yield "used n% of its budget", f"over {formats.NEAR_BUDGET:.0%} more or less than the track"
    if stale and any(row.stale for row in rows):
        yield "stale", "neither made nor verified by the installed code"
