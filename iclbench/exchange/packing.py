"""What is pushed: a record as a model repository, a board or a task's prompts as a dataset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from ..api.errors import RecordError, UsageError
from ..api.record import Record
from ..console import Reporter, counted
from ..files import read_regular_file, regular_file, regular_file_digest
from ..leaderboards.board import Boards
from ..leaderboards.curves import curves_table
from ..leaderboards.export import as_parquet
from ..leaderboards.reading import require_task, sound_boards
from ..runs.heldout import MOST_BYTES as MOST_HELD_OUT_BYTES
from ..runs.heldout import held_out_path, read_held_out
from ..runs.objects import Objects
from ..runs.store import MOST_RECORD_BYTES, RecordStore, folder_of_records, read_record
from .cards import model_card, results_card
from .document import DOCUMENT, read_export
from .task_data import texts_of

Kind = Literal["model", "dataset"]
Content = bytes | Path

#: Bytes that are read at once.
CHUNK = 2**20
#: The most bytes of a file that is pushed.
MOST_FILE_BYTES = 2**36


@dataclass(frozen=True)
class Package:
    """The files of a repository by their paths in it, and what they are."""

    kind: Kind
    title: str
    files: dict[str, Content]

    def size(self, path: str) -> int:
        """The bytes of a file."""
        content = self.files[path]
        return len(content) if isinstance(content, bytes) else content.stat().st_size

    def chunks(self, path: str) -> Iterator[bytes]:
        """The content of a file, part by part; raises RecordError if it is no regular file."""
        content = self.files[path]
        if isinstance(content, bytes):
            yield content
            return
        with regular_file(content, MOST_FILE_BYTES) as file:
            while chunk := file.read(CHUNK):
                yield chunk


def pack(path: Path, refused: Reporter, task: str | None = None) -> Package:
    """The package of a record, a folder of records, published leaderboards, or an export.

    `refused` gets a line for each record that is damaged and left out; `task` restricts a folder to
    one task. Raises UsageError or RecordError for anything else.
    """
    is_export = path.is_dir() and (path / DOCUMENT).is_file()
    if task is not None and (is_export or not path.is_dir()):
        raise UsageError("--task works only with a folder of records")
    if is_export:
        return _pack_export(path)
    if path.is_dir():
        return _pack_results(folder_of_records(path), refused, task)
    return _pack_record(path)


def _pack_record(path: Path) -> Package:
    """The weights of all seeds, the spec, the record with its files, and a card."""
    record = read_record(path)
    files: dict[str, Content] = {}
    _add_record(files, record, path)
    spec = json.dumps(record.spec.model_dump(mode="json"), indent=1)
    files["spec.json"] = (spec + "\n").encode()
    if record.weights_file is not None:
        # The same bytes as the object: the hub stores them once.
        files["model.safetensors"] = files[record.weights_file.name]
    files["README.md"] = model_card(record).encode()
    return Package("model", f"{record.spec.model} on {record.spec.task}", files)


def _pack_results(folder: Path, refused: Reporter, task: str | None) -> Package:
    """The rows and curves as Parquet, the records with their files, and a card."""
    store = RecordStore(folder)
    require_task(store, task)
    boards = sound_boards(store, refused, task=task, whole=True)
    records = [row.record for board in boards for row in board.rows]
    if not records:
        raise UsageError(f"there are no sound records in {folder}" + (f" of {task}" * bool(task)))
    files: dict[str, Content] = {}
    for record in records:
        _add_record(files, record, store.path(record.spec))
    files["rows.parquet"] = as_parquet(boards.frame())
    curves = curves_table(records)
    if len(curves):
        files["curves.parquet"] = as_parquet(curves)
    files["README.md"] = results_card(boards, has_curves=len(curves) > 0).encode()
    return Package("dataset", _title(boards, records), files)


def _title(boards: Boards, records: list[Record]) -> str:
    tasks = sorted({record.spec.task for record in records})
    what = tasks[0] if len(tasks) == 1 else f"{len(tasks)} tasks"
    return f"{counted(len(records), 'record')} on {counted(len(boards), 'board')} of {what}"


def _pack_export(folder: Path) -> Package:
    """The files that the document names, if they are still what it says."""
    export = read_export(folder)
    files: dict[str, Content] = {}
    for file in export.files:
        path = folder / file.path
        _require_digest(path, file.sha256)
        files[file.path] = path
    files[DOCUMENT] = read_regular_file(folder / DOCUMENT, 2**24)
    # Written again: an edited one may name other digests.
    files |= texts_of(export)
    return Package("dataset", f"{counted(export.prompts, 'prompt')} of {export.task}", files)


def _require_digest(path: Path, sha256: str) -> None:
    if regular_file_digest(path, MOST_FILE_BYTES) != sha256:
        raise RecordError(f"{path} was changed: its SHA-256 differs from {DOCUMENT}")


def _add_record(files: dict[str, Content], record: Record, path: Path) -> None:
    """Add a record as it was written, its files after checking them, and what was held out."""
    objects = Objects.beside(path)
    for reference in record.files():
        if reference.name not in files:
            files[reference.name] = objects.sound_path(reference)
    files[record.file] = read_regular_file(path, MOST_RECORD_BYTES)
    if read_held_out(path, record) is not None:
        held_out = read_regular_file(held_out_path(path), MOST_HELD_OUT_BYTES)
        files[held_out_path(PurePosixPath(record.file)).as_posix()] = held_out
