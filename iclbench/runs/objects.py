"""Objects: the files that records name, each stored once and named by its content.

A file is `FOLDER/objects/AB/ABCDEF….FORMAT`, where ABCDEF… is the SHA-256 of its bytes. A record
holds only the digest and the format, so it can't name a path. Before a file is used its digest is
checked, and it must be a regular file of bounded size.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import zstandard

from ..api.errors import RecordError, RunError
from ..api.results import MOST_VALUES, FileReference
from ..files import read_regular_file, regular_file_digest, write_atomically

OBJECTS_FOLDER = "objects"
#: The most bytes of any other file.
MOST_OBJECT_BYTES = 2**33
#: Higher levels of zstd save about 1% of measured errors, whose last bits are noise.
COMPRESSION = 3
#: Files younger than this, a week, are not collected: a run may be about to name them in its
#: record, once all that it trained together is evaluated.
GRACE_SECONDS = 7 * 24 * 3600.0


def most_bytes(shape: Sequence[int]) -> int:
    """The most bytes that an array of this shape takes as a file."""
    size = 8 * math.prod(max(length, 0) for length in shape)
    # An incompressible frame is longer than its content by less than this.
    return size + size // 128 + 1024


class Objects:
    """The objects of one folder of records."""

    def __init__(self, records: Path) -> None:
        """`records` is the folder that holds TASK/MODEL-ID.json."""
        self.records = records

    @classmethod
    def beside(cls, record: Path) -> Objects:
        """The objects that the record in this path names."""
        # A record in the current folder, `name.json`, has no parents to go by.
        return cls(Path(os.path.normpath(record.parent / "..")))

    def path(self, reference: FileReference) -> Path:
        """The path of an object, whether or not it exists."""
        return self.records / reference.name

    def write(self, data: bytes, kind: Literal["safetensors", "jsonl"]) -> FileReference:
        """Store the bytes of a file."""
        return self._store(
            FileReference(sha256=hashlib.sha256(data).hexdigest(), format=kind), data
        )

    def write_arrays(self, values: Mapping[str, np.ndarray]) -> dict[str, FileReference]:
        """Store each array as float64, in an object of its own."""
        total = sum(array.size for array in values.values())
        if total > MOST_VALUES:
            raise RunError(f"{total:,} values are too many; evaluate fewer prompts")
        references = {}
        for name, array in values.items():
            data = pack(array)
            sha256 = hashlib.sha256(data).hexdigest()
            reference = FileReference(sha256=sha256, format="f64.zst", shape=array.shape)
            references[name] = self._store(reference, data)
        return references

    def _store(self, reference: FileReference, data: bytes) -> FileReference:
        path = self.path(reference)
        if path.is_file() and not path.is_symlink() and path.read_bytes() == data:
            os.utime(path)  # so that it is not collected before its record is written
        else:
            write_atomically(path, data)
        return reference

    def read(self, reference: FileReference, most: int = MOST_OBJECT_BYTES) -> bytes:
        """The bytes of an object; raises RecordError if it is missing, changed or too large."""
        data = read_regular_file(self._path_without_links(reference), most)
        self._require_digest(reference, hashlib.sha256(data).hexdigest())
        return data

    def sound_path(self, reference: FileReference) -> Path:
        """The path of an object; raises RecordError as `read` does, but holds none of its bytes."""
        path = self._path_without_links(reference)
        self._require_digest(reference, regular_file_digest(path, MOST_OBJECT_BYTES))
        return path

    def _path_without_links(self, reference: FileReference) -> Path:
        path = self.path(reference)
        for folder in (path.parent.parent, path.parent):
            if folder.is_symlink():
                raise RecordError(f"{folder} is a link; objects must be in the folder itself")
        return path

    def _require_digest(self, reference: FileReference, sha256: str) -> None:
        if sha256 != reference.sha256:
            path = self.path(reference)
            raise RecordError(f"{path} was changed: its SHA-256 is not its name")

    def read_array(self, reference: FileReference) -> np.ndarray:
        """The array of an object, float64; raises RecordError for anything else."""
        path, shape = self.path(reference), reference.shape
        if reference.format != "f64.zst" or shape is None or min(shape, default=0) < 0:
            raise RecordError(f"{path} is not named as an array")
        if math.prod(shape) > MOST_VALUES:
            raise RecordError(f"{path}: {math.prod(shape):,} values are more than are read")
        data = self.read(reference, most=most_bytes(shape))
        try:
            return unpack(data, shape)
        except (zstandard.ZstdError, ValueError) as error:
            raise RecordError(f"{path} is not an array of shape {shape}: {error}") from None

    def collect(self, grace_seconds: float = GRACE_SECONDS) -> list[Path]:
        """Delete the objects that no JSON file of the folder names, and return their paths.

        Any digest in the text of a file beside the records counts, damaged or not. Objects that
        were written in the last `grace_seconds` stay.
        """
        before = time.time() - grace_seconds
        old = [
            path
            for path in sorted((self.records / OBJECTS_FOLDER).glob("??/*"))
            if path.is_file() and path.lstat().st_mtime < before
        ]
        named = _digests_in(self.records.glob("*/*.json")) if old else set()
        unnamed = [path for path in old if path.name.partition(".")[0] not in named]
        for path in unnamed:
            path.unlink(missing_ok=True)
        return unnamed


def _digests_in(files: Iterable[Path]) -> set[str]:
    """Every word of 64 characters between quotes in these files."""
    words: set[str] = set()
    for file in files:
        try:
            parts = file.read_text("utf-8", errors="replace").split('"')
        except FileNotFoundError:  # another process has removed its checkpoint since
            continue
        words.update(part for part in parts if len(part) == 64)
    return words


def pack(values: np.ndarray) -> bytes:
    """An array as one zstd frame of its bytes, the first byte of every value first."""
    content = np.ascontiguousarray(values, dtype="<f8").reshape(-1).view(np.uint8).reshape(-1, 8)
    return zstandard.ZstdCompressor(level=COMPRESSION).compress(
        np.ascontiguousarray(content.T).tobytes()
    )


def unpack(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The array of `pack`; raises ValueError or ZstdError unless it has exactly this shape."""
    size = 8 * math.prod(shape)
    # The size in the frame's header decides how much memory the decompressor takes.
    if zstandard.frame_content_size(data) != size:
        raise ValueError(f"it holds {zstandard.frame_content_size(data)} bytes, not {size}")
    decompressor = zstandard.ZstdDecompressor(max_window_size=2**27)
    raw = decompressor.decompress(data, max_output_size=size, allow_extra_data=False)
    if len(raw) != size:
        raise ValueError(f"it holds {len(raw)} bytes, not {size}")
    shuffled = np.frombuffer(raw, np.uint8).reshape(8, -1)
    return np.ascontiguousarray(shuffled.T).view("<f8").reshape(shape).astype(np.float64)
