"""RecordStore: reading and writing records and the files that they name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from safetensors.numpy import load, save

from ..api.errors import RecordError
from ..api.record import SCHEMA_VERSION, FileReference, Record
from ..api.spec import ResolvedSpec, digest_of, spec_id
from ..files import write_atomically


def read_record(path: Path) -> Record:
    """The record in `path`; raises RecordError for a truncated or edited one, or another file."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path} is truncated or not a record: {error}") from None
    if not isinstance(raw, dict) or "digest" not in raw or "schema_version" not in raw:
        raise RecordError(f"{path} is not the record of a run")
    if raw["schema_version"] != SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {raw['schema_version']}, not {SCHEMA_VERSION}"
        )
    if digest_of({k: v for k, v in raw.items() if k != "digest"}) != raw["digest"]:
        raise RecordError(f"{path} was edited: its digest does not match its content")
    try:
        record = Record.model_validate(raw)
    except ValidationError as error:
        raise RecordError(f"{path} is not a record: {error.errors()[0]['msg']}") from None
    # The spec as written in the file, so that fields added later leave old ids valid.
    if record.id != spec_id(raw["spec"]):
        raise RecordError(f"{path} was edited: its id is not its spec's")
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def read_per_prompt(path: Path, record: Record) -> dict[str, np.ndarray]:
    """Every prompt's values: `metric/NAME` (seeds, prompts[, axis]), `floor/NAME` without seeds.

    `path` is the record's; raises RecordError when the file is missing or was changed.
    """
    return load(read_referenced(path, record.per_prompt))


def read_referenced(path: Path, reference: FileReference) -> bytes:
    """The bytes of a file beside the record in `path`; raises RecordError if they were changed."""
    file = path.parent / reference.file
    try:
        data = file.read_bytes()
    except OSError as error:
        raise RecordError(f"{file} can't be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != reference.sha256:
        raise RecordError(f"{file} was changed: its SHA-256 is not the record's")
    return data


class RecordStore:
    """A folder of records `TASK/MODEL-ID.json`, with the files that they name beside them."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, spec: ResolvedSpec, suffix: str = ".json") -> Path:
        """The path of a run's record, or with another suffix of one of its files."""
        return self.folder / spec.task / f"{spec.model}-{spec.id}{suffix}"

    def find(self, spec: ResolvedSpec) -> Record | None:
        """The run's record, or None; raises RecordError when it is damaged."""
        path = self.path(spec)
        return read_record(path) if path.exists() else None

    def write(self, record: Record) -> Path:
        """Write the record atomically, then delete the files of the record it replaces."""
        path = self.path(record.spec)
        text = json.dumps(record.sealed().model_dump(mode="json"), indent=1, allow_nan=False)
        write_atomically(path, (text + "\n").encode())
        current = {reference.file for reference in record.files()}
        for ending in ("safetensors", "jsonl"):
            for file in path.parent.glob(f"{path.stem}.*.{ending}"):
                if file.name not in current:
                    file.unlink()
        return path

    def write_file(
        self, spec: ResolvedSpec, kind: str, data: bytes, ending: str = "safetensors"
    ) -> FileReference:
        """Write a file beside the record; its name holds its digest, so no other is overwritten."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.path(spec, f".{sha256[:8]}.{kind}.{ending}")
        write_atomically(path, data)
        return FileReference(file=path.name, sha256=sha256)

    def write_per_prompt(
        self, spec: ResolvedSpec, values: dict[str, np.ndarray], floor_values: dict[str, np.ndarray]
    ) -> FileReference:
        """Write the values of every prompt, which `read_per_prompt` reads."""
        arrays = {f"metric/{name}": np.ascontiguousarray(v) for name, v in values.items()}
        arrays |= {f"floor/{name}": np.ascontiguousarray(v) for name, v in floor_values.items()}
        return self.write_file(spec, "prompts", save(arrays))

    def paths(self) -> Iterator[Path]:
        """Every record's path, sorted; other files are ignored."""
        return (p for p in sorted(self.folder.glob("*/*.json")) if is_record_name(p))


def is_record_name(path: Path) -> bool:
    """Whether a file is named like a record, NAME-ID.json."""
    return re.fullmatch(r".+-[0-9a-f]{16}\.json", path.name) is not None
