"""RecordStore: reading and writing records and the files that they name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from ..api.errors import RecordError
from ..api.record import SCHEMA_VERSION, Record
from ..api.results import FileReference
from ..api.spec import ResolvedSpec, digest_of, spec_id
from ..files import read_regular_file, write_atomically
from .objects import Objects

#: The most bytes of a record.
MOST_BYTES = 2**26


def read_record(path: Path) -> Record:
    """The record in `path`; raises RecordError for a truncated or edited one, or another file."""
    raw = _read_json(path)
    if not isinstance(raw, dict) or "digest" not in raw or "schema_version" not in raw:
        raise RecordError(f"{path} is not the record of a run")
    if raw["schema_version"] != SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {raw['schema_version']!r}, not {SCHEMA_VERSION}"
        )
    try:
        digest = digest_of({k: v for k, v in raw.items() if k != "digest"})
    except (ValueError, RecursionError):
        raise RecordError(f"{path} holds a number that is not finite, or is nested") from None
    if digest != raw["digest"]:
        raise RecordError(f"{path} was edited: its digest does not match its content")
    try:
        record = Record.model_validate(raw)
    except (ValidationError, RecursionError) as error:
        raise RecordError(f"{path} is not a record: {_first_problem(error)}") from None
    # The spec as written in the file, so that fields added later leave old ids valid.
    if record.id != spec_id(raw["spec"]):
        raise RecordError(f"{path} was edited: its id is not its spec's")
    return record


def _read_json(path: Path) -> Any:
    try:
        text = read_regular_file(path, MOST_BYTES).decode("utf-8")
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise RecordError(f"{path} is not a record: it is nested too deeply") from None
    except ValueError as error:
        raise RecordError(f"{path} is truncated or not a record: {error}") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _first_problem(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]


def read_values(path: Path, references: dict[str, FileReference]) -> dict[str, np.ndarray]:
    """The values that the record in `path` names for these metrics, float64.

    Those of models are (seeds, prompts[, axis]), those of a floor (prompts[, axis]). Raises
    RecordError when a file is missing or was changed.
    """
    objects = Objects.beside(path)
    return {name: objects.read_array(reference) for name, reference in references.items()}


class RecordStore:
    """A folder of records `TASK/MODEL-ID.json`, with the files that they name in `objects`."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.objects = Objects(self.folder)

    def path(self, spec: ResolvedSpec) -> Path:
        """The path of a run's record."""
        return self.folder / spec.task / f"{spec.model}-{spec.id}.json"

    def find(self, spec: ResolvedSpec) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""
        path = self.path(spec)
        return read_record(path) if path.exists() else None

    def write(self, record: Record) -> Path:
        """Write the record atomically; after replacing another, delete what nothing names now."""
        path = self.path(record.spec)
        replaces = path.exists()
        text = json.dumps(record.sealed().model_dump(mode="json"), indent=1, allow_nan=False)
        write_atomically(path, (text + "\n").encode())
        if replaces:
            self.objects.collect()
        return path

    def paths(self) -> Iterator[Path]:
        """Every record's path, sorted; other files are ignored."""
        return (p for p in sorted(self.folder.glob("*/*.json")) if is_record_name(p))


def is_record_name(path: Path) -> bool:
    """Whether a file is named like a record, NAME-ID.json."""
    return re.fullmatch(r".+-[0-9a-f]{16}\.json", path.name) is not None
