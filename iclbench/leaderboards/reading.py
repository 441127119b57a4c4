"""Reading the records of a folder: those that are unsound are reported and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..api.errors import RecordError, problem_with
from ..api.record import Record
from ..runs.objects import Objects
from ..runs.store import RecordStore, read_record
from .board import Boards, boards

#: Takes one line for every record that is left out; it names the record's path.
Refused = Callable[[str], None]


def sound_records(paths: Iterable[Path], refused: Refused) -> Iterator[tuple[Path, Record]]:
    """The sound records of these paths; nothing about one of them stops the others."""
    for path in paths:
        try:
            yield path, read_record(path)
        except Exception as error:
            refused(problem_with(path, error))


def sound_boards(
    store: RecordStore, refused: Refused, *, task: str | None = None, whole: bool = False
) -> Boards:
    """The boards of the store's sound records, of one task if given.

    A record's values must be sound too; if `whole`, so must be all files that it names.
    """
    records = []
    for path, record in sound_records(store.paths(), refused):
        if task not in {None, record.spec.task}:
            continue
        try:
            _require_place(store, path, record)
            if whole:
                _require_files(path, record)
        except RecordError as error:
            refused(problem_with(path, error))
        else:
            records.append(record)
    try:
        return boards(records, store)
    except Exception:
        # Only where a value is unsound are values read twice, to learn of which record.
        return boards([r for r in records if _has_a_board(store, r, refused)], store)


def _require_place(store: RecordStore, path: Path, record: Record) -> None:
    """Raise RecordError for a copy of a record under another name: a run has one row."""
    place = store.path_of(record)
    if path != place:
        raise RecordError(f"the record of this run is {place.relative_to(store.folder)}")


def _require_files(path: Path, record: Record) -> None:
    for reference in record.files():
        Objects.beside(path).read(reference)


def _has_a_board(store: RecordStore, record: Record, refused: Refused) -> bool:
    try:
        boards([record], store)
    except Exception as error:
        refused(problem_with(store.path_of(record), error))
        return False
    return True
