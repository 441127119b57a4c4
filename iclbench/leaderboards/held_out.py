"""A row on held-out prompts: its score there, and what that says of the row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..api.errors import RecordError, problem_with
from ..api.record import Record
from ..files import RECORDS
from ..runs.heldout import SUFFIX, HeldOut, has_held_out, read_held_out

#: Why a row has no rank: its score there is worse, or it has none where others of its folder have.
FAILING, PENDING = "fails held out", "not held out"


def pending(rows: Iterable[tuple[Path, Record, HeldOut | None]]) -> set[str]:
    """The ids of rows without the held-out evaluation that others of their folder have.

    A record that was never submitted waits for nothing: it has no proof, and is not in the folder
    of the published records.
    """
    known = [(path.parent.parent, record, evaluated) for path, record, evaluated in rows]
    waiting = [
        (folder, record.id)
        for folder, record, evaluated in known
        if evaluated is None
        and has_held_out(record)
        and (record.proof is not None or folder.name == RECORDS)
    ]
    evaluating = {folder for folder, _, evaluated in known if evaluated is not None}
    # A folder's files decide, since `rows` may be those of one board. Only folders that are still
    # open are searched, which may be large.
    for folder in {folder for folder, _ in waiting} - evaluating:
        if any(folder.glob(f"*/*{SUFFIX}")):
            evaluating.add(folder)
    return {run_id for folder, run_id in waiting if folder in evaluating}


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
    difference, goodness = held_out.difference, record.ranking.goodness
    before, now = scores = _scores(record, held_out)
    if None in scores:
        by_mean = goodness(now) < goodness(before)
    else:
        # Its sign is that of the test: scores also count digits beyond the attainable.
        by_mean = held_out.differs and goodness(difference.mean) < 0
    return by_mean or (held_out.ranks_differ and difference.better < 0.5)


def without_failing(
    records: Iterable[tuple[Path, Record]], refused: Callable[[str], object]
) -> Iterator[Record]:
    """The records, at their paths, except those that held-out prompts contradict, or that wait.

    `refused` gets a line for each damaged held-out evaluation; its record is left out too.
    """
    known = []
    for path, record in records:
        try:
            known.append((path, record, read_held_out(path, record)))
        except RecordError as error:
            refused(problem_with(path, error))
    waiting = pending(known)
    for _, record, evaluated in known:
        if record.id not in waiting and not fails(record, evaluated):
            yield record


def _scores(record: Record, held_out: HeldOut) -> tuple[float | None, float | None]:
    """The statistic that ranks, on the board's prompts and on held-out ones."""
    return record.score, record.ranking.score(held_out.statistics)


def is_of_public_data(record: Record) -> bool:
    """Whether the prompts are made of fixed data, on which somebody may have trained."""
    return bool(record.main.provenance)
