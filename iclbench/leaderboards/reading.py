"""Reading the records of a folder: those that are unsound are reported and left out."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ..api.errors import (
    PLUGIN_FAILURES,
    IclbenchError,
    RecordError,
    UsageError,
    problem_with,
    unknown,
)
from ..api.record import Record
from ..api.suite import SuiteBoard
from ..plugins import host
from ..runs.heldout import held_out_path
from ..runs.objects import OBJECTS_FOLDER, Objects
from ..runs.recorded_answers import read_answers
from ..runs.store import RecordStore, read_record, require_place
from .board import Boards, Places, boards

#: Takes one line for every record that is left out; it names the record's path.
Refused = Callable[[str], None]


@dataclass(frozen=True)
class Together:
    """Folders of records read as one; a record that several hold is that of the first.

    It has the held-out evaluation of any of them: your own copy of a published row has none.
    """

    stores: tuple[RecordStore, ...]

    def paths(self) -> Iterator[Path]:
        """Every record's path, the first store's first."""
        known: set[tuple[str, ...]] = set()
        for store in self.stores:
            for path in store.paths():
                name = path.parts[-2:]
                if name not in known:
                    known.add(name)
                    yield path

    def path_of(self, record: Record) -> Path:
        """The path of a record in the first store with its held-out evaluation, or that has it."""
        paths = [store.path_of(record) for store in self.stores]
        held = [path for path in paths if path.exists()]
        evaluated = (path for path in held if len(held) > 1 and _is_evaluated(path, record))
        return next(evaluated, (held or paths)[0])

    def __str__(self) -> str:
        return " and ".join(str(store.folder) for store in self.stores)


def _is_evaluated(path: Path, record: Record) -> bool:
    """Whether the record in `path` has these weights and values, and is evaluated on held-out."""
    if not held_out_path(path).exists():
        return False
    try:
        there = read_record(path)
    except PLUGIN_FAILURES:
        return False
    return (there.weights_file, there.files()) == (record.weights_file, record.files())


def sound_records(paths: Iterable[Path], refused: Refused) -> Iterator[tuple[Path, Record]]:
    """The sound records of these paths; nothing about one of them stops the others."""
    for path in paths:
        try:
            yield path, read_record(path)
        except PLUGIN_FAILURES as error:
            refused(problem_with(path, error))


def sound_records_of(
    store: RecordStore | Together, refused: Refused, *, task: str | None = None, whole: bool = False
) -> list[Record]:
    """The store's sound records, of one task if given; if `whole`, with all files that they name.

    Values are read by what makes boards of the records.
    """
    paths = (p for p in store.paths() if task in {None, p.parent.name})
    records = []
    with _without_collection():
        for path, record in sound_records(paths, refused):
            try:
                require_place(path, record)
                if whole:
                    _require_files(path, record)
            except RecordError as error:
                refused(problem_with(path, error))
            else:
                records.append(record)
    return records


def require_task(store: RecordStore | Together, task: str | None) -> None:
    """Raise UsageError for a task that none of the store's records is of."""
    tasks = {path.parent.name for path in store.paths()}
    if tasks and task not in {None, *tasks}:
        error = unknown("task of these records", str(task), tasks)
        board = next((board for board in _boards_of_suites() if board.name == task), None)
        if board is not None:
            other = board.fields.get("task")
            raise UsageError(f"{error} (board {task} of a suite is of task {other})")
        raise error


def _boards_of_suites() -> Iterator[SuiteBoard]:
    """The boards of all suites that can be read."""
    from ..runs.suites import find_suite

    for _, entry in host().entries("suite"):
        with suppress(IclbenchError):
            yield from find_suite(entry.name).boards


def sound_boards(
    store: RecordStore, refused: Refused, *, task: str | None = None, whole: bool = False
) -> Boards:
    """The boards of `sound_records_of`. A record's values must be sound too."""
    records = sound_records_of(store, refused, task=task, whole=whole)
    return boards_of(records, store, refused)


def boards_of(records: Sequence[Record], store: Places, refused: Refused) -> Boards:
    """The boards of those records of a store whose values are sound.

    Raises RecordError for a folder of records without any values.
    """
    for folder in sorted({store.path_of(record).parents[1] for record in records}):
        require_objects(folder)
    with _without_collection():
        try:
            return boards(records, store)
        except PLUGIN_FAILURES:
            # Only where a value is unsound are values read twice, to learn of which record.
            return boards([r for r in records if _has_a_board(store, r, refused)], store)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the collection of cycles: thousands of records stay, and have none to look for."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def require_objects(records: Path) -> None:
    """Raise RecordError for a folder of records without the folder of the files that they name."""
    if not (records / OBJECTS_FOLDER).is_dir():
        raise RecordError(
            f"{records} lacks {OBJECTS_FOLDER}/, which holds the per-prompt values for comparing "
            "rows; in a sparse checkout of a repository, `git sparse-checkout disable` fetches it"
        )


def _require_files(path: Path, record: Record) -> None:
    objects = Objects.beside(path)
    for reference in record.files():
        objects.sound_path(reference)
    read_answers(record, objects)


def _has_a_board(store: Places, record: Record, refused: Refused) -> bool:
    try:
        boards([record], store)
    except PLUGIN_FAILURES as error:
        refused(problem_with(store.path_of(record), error))
        return False
    return True
