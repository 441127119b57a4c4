"""RecordStore: a folder of records and the files that they name; reading and writing both."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from ..api.errors import RecordError
from ..api.record import SCHEMA_VERSION, FileReference, Record
from ..api.spec import ResolvedSpec, digest_of, spec_id
from ..files import write_atomically


def read_record(path: Path) -> Record:
    """The record in `path`; raises RecordError when it is truncated, edited or of another kind."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path} is truncated or no record: {error}") from None
    if not isinstance(raw, dict) or "digest" not in raw or "schema_version" not in raw:
        raise RecordError(f"{path} is no record of a run")
    if raw["schema_version"] != SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {raw['schema_version']}, not {SCHEMA_VERSION}"
        )
    if digest_of({k: v for k, v in raw.items() if k != "digest"}) != raw["digest"]:
        raise RecordError(f"{path} was edited: its digest does not match its content")
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        raise RecordError(f"{path} is no record: {error.errors()[0]['msg']}") from None
    # The spec as it stands in the file: fields that are added later don't touch old records.
    if record.id != spec_id(raw["spec"]):
        raise RecordError(f"{path} was edited: its id is not its spec's")
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def read_per_prompt(path: Path, record: Record) -> dict[str, np.ndarray]:
    """The values of every prompt, `metric/NAME` (seeds, prompts[, axis]) and `floor/NAME`.

    `path` is the record's own; raises RecordError when the file is missing or was changed.
    """
    from safetensors.numpy import load

    return load(read_referenced(path, record.per_prompt))


def read_referenced(path: Path, reference: FileReference) -> bytes:
    """The bytes of a file beside the record in `path`, checked against its SHA-256."""
    place = path.parent / reference.file
    try:
        data = place.read_bytes()
    except OSError as error:
        raise RecordError(f"{place} can't be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise RecordError(f"{place} was changed: its SHA-256 is not the record's")
    return data


class RecordStore:
    """A folder of records: `TASK/MODEL-ID.json`, with the files that they name beside them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, spec: ResolvedSpec, suffix: str = ".json") -> Path:
        """Where a run's record is, or another of its files."""
        return self.folder / spec.task / f"{spec.model}-{spec.id}{suffix}"

    def find(self, spec: ResolvedSpec) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""
        path = self.path(spec)
        return read_record(path) if path.exists() else None

    def write(self, record: Record) -> Path:
        """Write the record atomically, and then delete the files of the one it replaces."""
        path = self.path(record.spec)
        text = json.dumps(record.sealed().model_dump(mode="json"), indent=1, allow_nan=False)
        write_atomically(path, (text + "\n").encode())
        kept = {reference.file for reference in record.files()}
        for ending in ("safetensors", "jsonl"):
            for file in path.parent.glob(f"{path.stem}.*.{ending}"):
                if file.name not in kept:
                    file.unlink()
        return path

    def write_file(
        self, spec: ResolvedSpec, kind: str, data: bytes, ending: str = "safetensors"
    ) -> FileReference:
        """Write a file beside the record, named by its content: no record loses its own."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(spec, f".{sha256[:8]}.{kind}.{ending}")
        write_atomically(path, data)
        return FileReference(file=path.name, sha256=sha256)

    def paths(self) -> Iterator[Path]:
        """Every record's path, in a stable order; other files are passed over."""
        return (p for p in sorted(self.folder.glob("*/*.json")) if is_record_name(p))


def is_record_name(path: Path) -> bool:
    """Whether a file is named as records are, NAME-ID.json."""
    return re.fullmatch(r".+-[0-9a-f]{16}\.json", path.name) is not None
