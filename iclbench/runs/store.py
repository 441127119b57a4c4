"""RecordStore: reading and writing records and the files that they name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import numpy as np
from pydantic import ValidationError

from ..api.errors import RecordError, RunError, UsageError, problem_with
from ..api.names import content_problem, is_plain_name, visible
from ..api.record import SCHEMA_VERSION, Record
from ..api.results import FileReference
from ..api.spec import ResolvedSpec, canonical_json, digest_of, spec_id
from ..files import RECORDS, path_of, read_json, write_atomically
from .objects import Objects
from .stored import StoredFiles

#: The most bytes of a record.
MOST_RECORD_BYTES = 2**26


def read_record(path: str | Path) -> Record:
    """The record in `path`; raises RecordError for a truncated or edited one, or another file."""
    path = path_of(path)
    try:
        return _parse(_read(path)).stored_in(StoredFiles(path))
    except RecordError as error:
        raise RecordError(problem_with(path, error)) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, MOST_RECORD_BYTES)
    except ValueError as error:
        with suppress(OSError), path.open("rb") as file:
            # What a crash or a full disk leaves of a record may be empty or hold zeros.
            if file.read(1) not in {b"{", b"", b"\0"}:
                raise RecordError("it is not a record") from None
        reason = visible(str(error), 200)
        made_again = "`run --force` makes a record again"
        raise RecordError(f"it is truncated or not a record: {reason}; {made_again}") from None


def _parse(raw: dict[str, Any]) -> Record:
    """The record of parsed JSON; raises RecordError."""
    if "digest" not in raw or "schema_version" not in raw:
        raise RecordError("it is not the record of a run")
    if raw["schema_version"] != SCHEMA_VERSION:
        version = visible(repr(raw["schema_version"]), 20)
        raise RecordError(f"it has schema version {version}, not {SCHEMA_VERSION}")
    if digest_of({k: v for k, v in raw.items() if k != "digest"}) != raw["digest"]:
        raise RecordError("it was edited: its digest does not match its content")
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        raise RecordError(f"it is not a record: {_first_problem(error)}") from None
    # The spec as written in the file, so that fields added later leave old ids valid.
    if record.id != spec_id(raw["spec"]):
        raise RecordError("it was edited: its id is not its spec's")
    if not _is_as_written(record.spec, raw["spec"]):
        raise RecordError("its spec is not written as runs write it, so one run had several ids")
    return record


def _is_as_written(spec: ResolvedSpec, raw: dict[str, Any]) -> bool:
    """Whether the spec's JSON is the one that a run writes: 4.0 for 4 would be another id."""
    return canonical_json(spec.model_dump(mode="json")) == canonical_json(raw)


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_context=False, include_input=False)[0]
    where = visible(".".join(str(part) for part in first["loc"]), 100)
    message = visible(first["msg"].removeprefix("Value error, "), 200)
    return f"{where}: {message}" if where else message


def read_values(path: Path, references: dict[str, FileReference]) -> dict[str, np.ndarray]:
    """The values that the record in `path` names for these metrics, float64.

    Those of models are (seeds, prompts[, axis]), those of a floor (prompts[, axis]). Raises
    RecordError when a file is missing or was changed.
    """
    objects = Objects.beside(path)
    return {name: objects.read_array(reference) for name, reference in references.items()}


def require_place(path: Path, record: Record) -> None:
    """Raise RecordError unless the path ends in TASK/MODEL-ID.json: a run has one record."""
    if path.parts[-2:] != PurePosixPath(record.file).parts:
        raise RecordError(f"{path}: the record of this run is {record.file}")


class RunName(Protocol):
    """What the path of a run's record is made of, such as a resolved spec."""

    @property
    def task(self) -> str:
        """The task's name."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def id(self) -> str:
        """The run's id."""


def folder_of_records(given: Path) -> Path:
    """The folder of records that a folder is or, as that of leaderboards does, holds.

    Raises UsageError for anything else.
    """
    if given.is_file():
        raise UsageError(f"{given} is a file: give a folder of records")
    if not given.is_dir():
        raise UsageError(f"there is no folder {given}")
    inner = given / RECORDS
    if inner.is_dir():
        return inner
    if any(is_record_name(path) for path in given.glob("*.json")):
        whole = os.path.normpath(given / "..")
        raise UsageError(f"{given} holds the records of one task: give {whole}")
    return given


def require_results(folder: Path) -> None:
    """Raise UsageError for a folder of leaderboards as the output of runs.

    What reads it looks into `records` alone, where records come by `submit`.
    """
    if (folder / RECORDS).is_dir():
        raise UsageError(
            f"{folder} is a folder of leaderboards: give another folder, from which `iclbench "
            f"submit` copies records to {folder / RECORDS}"
        )


class RecordStore:
    """A folder of records `TASK/MODEL-ID.json`, with the files that they name in `objects`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = path_of(folder)
        self.objects = Objects(self.folder)

    def path(self, spec: RunName) -> Path:
        """The path of a run's record."""
        return self.folder / spec.task / f"{spec.model}-{spec.id}.json"

    def path_of(self, record: Record) -> Path:
        """The path of a record, by the id that it has."""
        return self.folder / record.file

    def find(self, spec: RunName) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""
        path = self.path(spec)
        return read_record(path) if path.exists() else None

    def write(self, record: Record) -> Path:
        """Write the record atomically; after replacing another, delete what nothing names now."""
        path = self.path(record.spec)
        before = _names_of_files(path)
        content = record.sealed().model_dump(mode="json")
        problem = content_problem(content)
        if problem is not None:
            raise RunError(f"its record can't be written: {problem}")
        data = (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()
        if len(data) > MOST_RECORD_BYTES:
            raise RunError(
                f"its record can't be written: it would have {len(data):,} bytes, and at most "
                f"{MOST_RECORD_BYTES:,} are read"
            )
        write_atomically(path, data)
        if not before <= {reference.name for reference in record.files()}:
            self.objects.collect()
        record.stored_in(StoredFiles(path))
        return path

    def paths(self) -> Iterator[Path]:
        """Every record's path, sorted; a renamed one's too, so that what reads them can say so."""
        return (p for p in sorted(self.folder.glob("*/*.json")) if is_record(p))


def _names_of_files(path: Path) -> set[str]:
    """The files that the record in `path` names; none if it is missing or damaged."""
    try:
        return {reference.name for reference in read_record(path).files()}
    except (RecordError, OSError):
        return set()


def is_record(path: Path) -> bool:
    """Whether a file is a record by its name or, under another name, by how its content starts."""
    if is_record_name(path):
        return True
    try:
        if not path.is_file():  # a pipe would never end
            return False
        with path.open("rb") as file:
            return re.match(rb'\s*\{\s*"schema_version"', file.read(64)) is not None
    except OSError:
        return False


def is_record_name(path: Path) -> bool:
    """Whether a file is named like a record, NAME-ID.json."""
    return re.fullmatch(r".+-[0-9a-f]{16}\.json", path.name) is not None and is_plain_name(
        path.name
    )
