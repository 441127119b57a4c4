"""Writing files so that a kill at any moment loses nothing, and telling files apart by content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from .api.errors import RecordError, UsageError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` beside `path` and rename, so that `path` is whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def file_digest(path: Path) -> str:
    """SHA-256 of a file; raises RecordError if it can't be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RecordError(f"{path} can't be read: {error.strerror}") from None


def require_writable(folder: Path) -> None:
    """Make `folder` where it is missing; raises UsageError if it can't be written."""
    probe = folder / f".{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(f"the output folder {folder} can't be written: {error.strerror}") from None
