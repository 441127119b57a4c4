"""Where a pull reads from: a repository of the hub, or a folder."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

from ..api.errors import RecordError, UsageError
from ..api.names import visible
from ..files import regular_file
from ..runs.store import folder_of_records
from .hub import Hub, HubFile
from .packing import CHUNK, MOST_FILE_BYTES, Kind


class Source(Protocol):
    """Files by their paths, with sizes. Nobody vouches for any of them."""

    @property
    def name(self) -> str:
        """The repository or the folder, in messages."""
        ...

    def entries(self) -> list[HubFile]:
        """Every file."""
        ...

    def chunks(self, path: str) -> Generator[bytes, None, None]:
        """The bytes of a file, part by part."""
        ...


class HubSource:
    """A repository at the commit that it has now; raises UsageError if there is none."""

    def __init__(self, hub: Hub, kind: Kind, name: str) -> None:
        state = hub.state(kind, name)
        if state is None:
            what = "dataset" if kind == "dataset" else "model repository"
            hint = f"; a dataset is named datasets/{name}" if kind == "model" else ""
            raise UsageError(f"there is no {what} {name} visible to you at {hub.endpoint}{hint}")
        self.name = name
        self._hub, self._kind, self._state = hub, kind, state

    def entries(self) -> list[HubFile]:
        """See `Source.entries`."""
        return self._state.files

    def chunks(self, path: str) -> Generator[bytes, None, None]:
        """See `Source.chunks`."""
        return self._hub.chunks(self._kind, self.name, self._state.revision, path)


class FolderSource:
    """A folder of records, or of leaderboards, which holds one; a link in it is refused."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder_of_records(folder)
        self.name = str(self._folder)

    def entries(self) -> list[HubFile]:
        """See `Source.entries`."""
        entries = []
        for parent, folders, files in os.walk(self._folder):
            for name in (*folders, *files):
                path = Path(parent) / name
                if path.is_symlink():
                    raise RecordError(f"{visible(str(path), 300)} is a link")
            for name in files:
                path = Path(parent) / name
                entries.append(
                    HubFile(path.relative_to(self._folder).as_posix(), path.lstat().st_size)
                )
        return entries

    def chunks(self, path: str) -> Generator[bytes, None, None]:
        """See `Source.chunks`."""
        with regular_file(self._folder / path, MOST_FILE_BYTES) as file:
            while chunk := file.read(CHUNK):
                yield chunk
