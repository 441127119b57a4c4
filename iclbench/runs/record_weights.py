"""A record's path in place of a checkpoint's: `weights` and `init` may be a RECORD.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..api.errors import UsageError

#: Fields that take the path of a checkpoint.
FIELDS = ("weights", "init")


def with_files_of_weights(spec: dict[str, Any]) -> dict[str, Any]:
    """The fields of a request, with the file of its weights for every record that they name.

    Raises RecordError for a record that can't be read, and UsageError for one without weights.
    """
    files = {
        name: _weights_file(spec[name]) for name in FIELDS if str(spec.get(name)).endswith(".json")
    }
    return {**spec, **files}


def _weights_file(path: str) -> str:
    # Reading a record imports torch, which most commands' start must not wait for.
    from .objects import Objects
    from .store import read_record

    record = read_record(Path(path))
    if record.weights_file is None:
        raise UsageError(f"{path} is the record of a {record.spec.origin} model without weights")
    return str(Objects.beside(Path(path)).sound_path(record.weights_file))
