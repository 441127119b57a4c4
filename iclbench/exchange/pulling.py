"""Pulling: what a stranger has published is let into a folder only where all of it is sound.

Sizes are bounded while files arrive, and everything is checked in a temporary folder before any
file is put in its place.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath

from ..api.errors import PLUGIN_FAILURES, RecordError, UsageError, problem_with
from ..api.record import Record
from ..api.results import FileReference
from ..files import (
    STAGING,
    file_digest,
    is_free,
    remove_stale,
    removed_if_empty,
    require_writable,
    write_atomically,
)
from ..runs.heldout import MOST_BYTES, held_out_path, read_held_out
from ..runs.objects import MOST_OBJECT_BYTES, Objects, most_bytes
from ..runs.proofs import is_retrained, repeats, without_proof
from ..runs.store import MOST_RECORD_BYTES, RecordStore, read_record, require_place
from ..runs.time_limit import time_limit
from ..runs.verify import require_holding
from .comparison import require_same_prompts
from .document import DOCUMENT, MOST_DOCUMENT_BYTES, Export, read_export
from .hub import HubFile
from .listing import Listing, left_out
from .sources import Source
from .task_data import texts_of

#: Files that are read at the same time.
WORKERS = 8


def pull_records(
    source: Source, listed: Listing, out: Path, *, measure: bool, most: float
) -> list[Path]:
    """Copy a source's records and their files into the store `out`; returns the records' paths.

    Nothing is copied unless every record is sound and, with `measure`, holds when it is verified.
    A record that is there already stays. Raises RecordError with the reason.
    """
    if not listed.records:
        misnamed = ", ".join(left_out(listed))
        hint = f"; not named like a record, MODEL-ID.json: {misnamed}" if misnamed else ""
        raise UsageError(f"{source.name} has no iclbench records{hint}")
    store = RecordStore(out)
    with _staging(out) as staging:
        _require_total(source, listed.records, most)
        _fetch_all(source, [(e, MOST_RECORD_BYTES) for e in listed.records], staging)
        records = [_sound_record(staging, entry.path) for entry in listed.records]
        for record in records:
            _require_no_other(store, record)
        records = [_without_unseen_proof(staging, record, measure) for record in records]
        needed = _needed(source, records, listed)
        # Where nothing is measured, nobody has checked them either.
        held_out = _held_out(listed, records) if measure else []
        needed += [(entry, MOST_BYTES) for entry in held_out]
        _require_total(source, [*listed.records, *(entry for entry, _ in needed)], most)
        _fetch_all(source, needed, staging)
        _require_whole(staging, records)
        if measure:
            for record in records:
                _require_holding(staging / record.file)
        for reference in _references(records):
            _move(staging, out, reference.name)
        for name in [record.file for record in records] + [entry.path for entry in held_out]:
            if not (out / name).exists():
                _move(staging, out, name)
    return [store.path(record.spec) for record in records]


@contextmanager
def _staging(out: Path) -> Iterator[Path]:
    """Give the block a temporary folder in `out`, which stays only if something is put there."""
    with removed_if_empty(out):
        require_writable(out)
        remove_stale(out)
        with tempfile.TemporaryDirectory(prefix=STAGING, dir=out) as temporary:
            yield Path(temporary)


def _sound_record(staging: Path, path: str) -> Record:
    try:
        record = read_record(staging / path)
        require_place(staging / path, record)
    except RecordError as error:
        # Whoever pulls can't mend the source by running it again.
        reason = str(error).partition("; `run --force`")[0]
        raise _unstaged(reason, staging) from None
    return record


def _without_unseen_proof(staging: Path, record: Record, measure: bool) -> Record:
    """The record without a proof of what is not repeated here: a training, or an evaluation."""
    if record.proof is not None and (is_retrained(record) or not measure):
        record = without_proof(record)
        RecordStore(staging).write(record)
    return record


def _require_no_other(store: RecordStore, record: Record) -> None:
    """Raise RecordError where the store has another record of the run: no row is replaced."""
    path = store.path(record.spec)
    if not path.exists():
        return
    here = read_record(path)
    same = without_proof(here).digest == without_proof(record).digest
    if not same and not repeats(here, record) and not repeats(record, here):
        raise RecordError(f"{path} is another record of this run; pull into another folder")


def _needed(
    source: Source, records: Sequence[Record], listed: Listing
) -> list[tuple[HubFile, int]]:
    """The objects that records name, each with the most bytes that it may have."""
    needed = {}
    for record in records:
        for reference in record.files():
            if reference.name not in listed.objects:
                raise RecordError(f"{source.name} lacks {reference.name}, which a record refers to")
            needed[reference.name] = (listed.objects[reference.name], _most_bytes(reference))
    return list(needed.values())


def _references(records: Sequence[Record]) -> list[FileReference]:
    """The files of the records, each once."""
    return list({r.name: r for record in records for r in record.files()}.values())


def _held_out(listed: Listing, records: Sequence[Record]) -> list[HubFile]:
    """The held-out evaluations of the records that have one."""
    paths = [held_out_path(PurePosixPath(record.file)).as_posix() for record in records]
    return [listed.others[path] for path in paths if path in listed.others]


def _most_bytes(reference: FileReference) -> int:
    if reference.shape is None:
        return MOST_OBJECT_BYTES
    return min(most_bytes(reference.shape), MOST_OBJECT_BYTES)


def _require_whole(staging: Path, records: Sequence[Record]) -> None:
    """Raise RecordError for a file whose digest is not its name, or another's held-out one."""
    objects = Objects(staging)
    for reference in _references(records):
        try:
            objects.sound_path(reference)
        except RecordError as error:
            raise _unstaged(str(error), staging) from None
    for record in records:
        read_held_out(staging / record.file, record)


def _require_holding(path: Path) -> None:
    """As `runs.verify.require_holding`; the reason does not name the temporary folder."""
    try:
        require_holding(path, hint="; --no-verify copies it without measuring")
    except PLUGIN_FAILURES as error:
        raise _unstaged(problem_with(path, error), path.parents[1]) from None


def _unstaged(reason: str, staging: Path) -> RecordError:
    """The error with this reason, without the name of the temporary folder."""
    return RecordError(reason.replace(f"{staging}{os.sep}", ""))


def pull_export(
    source: Source, listed: Listing, out: Path, *, measure: bool, most: float
) -> Export:
    """Copy a task's dataset into the new or empty folder `out`, after checking every digest.

    With `measure`, its prompts are made again and compared. Raises RecordError with the reason.
    """
    assert listed.document is not None
    if not is_free(out):
        raise UsageError(f"{out} holds files: give a new folder with --out")
    with _staging(out) as staging:
        _fetch_all(source, [(listed.document, MOST_DOCUMENT_BYTES)], staging)
        export = read_export(staging)
        files = []
        for file in export.files:
            entry = listed.others.get(file.path)
            if entry is None:
                raise RecordError(f"{source.name} lacks {file.path}, which {DOCUMENT} refers to")
            files.append((entry, file.bytes))
        _require_total(source, [entry for entry, _ in files], most)
        _fetch_all(source, files, staging)
        for file in export.files:
            if file_digest(staging / file.path) != file.sha256:
                raise RecordError(f"{file.path} was changed: its SHA-256 differs from the document")
        if measure:
            with time_limit("; --no-verify copies it without making its prompts"):
                require_same_prompts(staging, export)
        for entry, _ in files:
            _move(staging, out, entry.path)
        for name, content in texts_of(export).items():
            # A stranger's may name other digests.
            write_atomically(out / name, content)
        _move(staging, out, DOCUMENT)
    return export


def _require_total(source: Source, entries: Sequence[HubFile], most: float) -> None:
    total = sum(entry.size for entry in entries)
    if total > most:
        raise RecordError(
            f"{source.name}: its files have {total:,} bytes; the limit is {most:,.0f} (--max-size)"
        )


def _fetch_all(source: Source, files: Sequence[tuple[HubFile, int]], staging: Path) -> None:
    """Copy files, several at once; the first that fails ends the rest."""
    stop = threading.Event()
    with ThreadPoolExecutor(WORKERS) as pool:
        copies = [pool.submit(_fetch, source, *file, staging, stop) for file in files]
        try:
            for copy in as_completed(copies):
                copy.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _fetch(
    source: Source, entry: HubFile, most: float, staging: Path, stop: threading.Event
) -> None:
    """Copy one file, which must have the size that was listed and at most `most` bytes.

    Once `stop` is set, the file does not matter any more.
    """
    if entry.size > most:
        raise RecordError(
            f"{source.name}: {entry.path} has {entry.size:,} bytes; the limit is {most:,.0f}"
        )
    target = staging / entry.path
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    # `closing` ends the connection where the loop is left early.
    with closing(source.chunks(entry.path)) as chunks, target.open("xb") as copy:
        for chunk in chunks:
            size += len(chunk)
            if size > entry.size or stop.is_set():
                break
            copy.write(chunk)
    if size != entry.size:
        received = "more" if size > entry.size else f"{size:,}"
        raise RecordError(
            f"{source.name}: {entry.path} has {received} bytes, not {entry.size:,} as listed"
        )


def _move(staging: Path, out: Path, name: str) -> None:
    target = out / name
    target.parent.mkdir(parents=True, exist_ok=True)
    (staging / name).replace(target)
