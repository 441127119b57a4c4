"""Stored: what a record that lies in a folder can read of its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import PrivateAttr

from .config import Config
from .errors import RecordError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


class RecordFiles(Protocol):
    """How a record that lies in a folder reads its files; `runs.stored.StoredFiles` does."""

    path: Path

    def frame(self, record: Any, metric: str | None, evaluation: str) -> pd.DataFrame:
        """See `Record.frame`."""

    def weights(self, record: Any) -> dict[int | None, dict[str, Tensor]]:
        """See `Record.weights`."""


class Stored(Config):
    """A document that may know the folder that it was read from, which is no part of it."""

    _stored: RecordFiles | None = PrivateAttr(None)

    def __eq__(self, other: object) -> bool:
        """Whether the content is the same, wherever the two records lie."""
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def stored_in(self, files: RecordFiles) -> Self:
        """Tell the record where it lies; returns the record."""
        self._stored = files
        return self

    @property
    def path(self) -> Path:
        """The record's own file, FOLDER/TASK/MODEL-ID.json; RecordError if it has none yet."""
        return self._files.path

    @property
    def folder(self) -> Path:
        """The folder of records that holds it; raises RecordError for a record without a file."""
        return Path(os.path.normpath(self.path.parent / ".."))

    @property
    def _files(self) -> RecordFiles:
        if self._stored is None:
            raise RecordError("the record has no folder: it was not read from a file")
        return self._stored

    def __fspath__(self) -> str:
        """Its path, so that a record can be given where a function takes a path."""
        return str(self.path)

    def frame(self, metric: str | None = None, evaluation: str = "main") -> pd.DataFrame:
        """Every value of a metric, by default of the one that ranks: one line each.

        The columns are `seed`, `prompt`, the metric's second axis if it has one (such as `prefix`),
        the metric itself, and `floor`, the task's floor on the same prompt. Raises UsageError for
        an unknown metric, RecordError for files that are missing or were changed.
        """
        return self._files.frame(self, metric, evaluation)

    def weights(self) -> dict[int | None, dict[str, Tensor]]:
        """The state dict of every seed's model, on the CPU; the key is None for loaded weights.

        Raises RecordError for a record without weights, or whose file is missing or was changed.
        """
        return self._files.weights(self)
