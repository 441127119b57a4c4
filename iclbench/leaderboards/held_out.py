"""A row on held-out prompts: its score there, and what that says of the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..api.errors import RecordError, problem_with
from ..api.record import Record
from ..runs.heldout import HeldOut, read_held_out


def differs(record: Record, held_out: HeldOut | None) -> bool:
    """Whether the held-out score differs significantly from the record's.

    No test is needed where only one of the two is finite.
    """
    if held_out is None:
        return False
    before, now = _scores(record, held_out)
    return held_out.differs or held_out.ranks_differ or (before is None) != (now is None)


def fails(record: Record, held_out: HeldOut | None) -> bool:
    """Whether the held-out score is significantly worse, as if the board's prompts were known."""
    if held_out is None:
        return False
    scores = _scores(record, held_out)
    before, now = map(record.ranking.goodness, scores)
    by_ranks = held_out.ranks_differ and held_out.difference.better < 0.5
    return by_ranks or (now < before and (held_out.differs or None in scores))


def without_failing(
    records: Iterable[tuple[Path, Record]], refused: Callable[[str], object]
) -> Iterator[Record]:
    """The records, at their paths, that held-out prompts do not contradict.

    `refused` gets a line for each damaged held-out evaluation; its record is left out too.
    """
    for path, record in records:
        try:
            if not fails(record, read_held_out(path, record)):
                yield record
        except RecordError as error:
            refused(problem_with(path, error))


def _scores(record: Record, held_out: HeldOut) -> tuple[float | None, float | None]:
    """The statistic that ranks, on the board's prompts and on held-out ones."""
    return record.score, record.ranking.score(held_out.statistics)


def is_of_public_data(record: Record) -> bool:
    """Whether the prompts are made of fixed data, on which somebody may have trained."""
    return bool(record.main.provenance)
