"""A site that follows a folder of records: built again when a record arrives or changes."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ...api.errors import PLUGIN_FAILURES, UsageError, reason_of
from ...files import RECORDS, STUDIES
from ...runs.objects import OBJECTS_FOLDER
from .build import make_site

#: Seconds between two looks at the folder.
INTERVAL = 1.0
#: Seconds that `close` waits for a build to end.
PATIENCE = 20.0

#: A record's path, and its size and time: what tells that the folder has changed.
Signature = frozenset[tuple[str, int, int]]


class LiveSite:
    """The newest site of a folder, in a temporary folder of its own.

    `folder` holds records, or a folder `records` with them and, as leaderboards do, studies and
    cited results. `report` gets a line for every problem that the build before did not have.
    """

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self.folder, self._report = folder, report
        self._base = Path(tempfile.mkdtemp(prefix="iclbench-view-"))
        #: The problems of the newest build, and of the one before.
        self._found: set[str] = set()
        self._known: set[str] = set()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._built: Signature | None = None
        self._built_from: Signature = frozenset()
        #: Counts the sites that were built; 0 before the first.
        self.version = 0
        #: The files of the newest site by name; empty without a sound record.
        self.files: dict[str, Path] = {}

    @property
    def records(self) -> Path:
        """The folder of the records themselves."""
        inner = self.folder / RECORDS
        return inner if inner.is_dir() else self.folder

    def refresh(self) -> bool:
        """Build the site if the records are not those of the last one; whether it did."""
        now, objects = self._signature(), self._objects()
        # A record that was left out may have arrived before its files.
        if now == self._built and (not self._found or objects == self._built_from):
            return False
        # Before it is built: what fails would fail again, until a record changes.
        self._built, self._built_from = now, objects
        self._known, self._found = self._found, set()
        out = self._base / str(self.version + 1)
        try:
            make_site(out, self.folder, self._refused, records=self.records, live=True)
            files = {p.relative_to(out).as_posix(): p for p in out.rglob("*") if p.is_file()}
        except UsageError as error:
            # No record yet, none that is sound, or a half-edited file: the last site stays.
            self._refused(str(error))
            if self.files and any(self.records.glob("*/*.json")):
                return False
            files = {}
        old = self._base / str(self.version)
        with self._changed:
            self.files, self.version = files, self.version + 1
            self._changed.notify_all()
        shutil.rmtree(old, ignore_errors=True)
        return True

    def _signature(self) -> Signature:
        return _facts(
            [
                *self.records.glob("*/*.json"),  # held-out evaluations lie beside records
                *self.folder.glob(f"{STUDIES}/*/*/*.json"),
                *self.folder.glob("*.toml"),
            ]
        )

    def _objects(self) -> Signature:
        """The folders of the files that records name: each changes when a file arrives."""
        return _facts(
            [
                *self.records.glob(f"{OBJECTS_FOLDER}/*"),
                *self.folder.glob(f"{STUDIES}/*/{OBJECTS_FOLDER}/*"),
            ]
        )

    def _refused(self, line: str) -> None:
        # A build that is cut off at the end has nothing to say.
        if line in self._found or self._stop.is_set():
            return
        self._found.add(line)
        if line not in self._known:
            self._report(line)

    @property
    def problems(self) -> list[str]:
        """The problems of the newest build, one line each."""
        return sorted(self._found)

    def watch(self) -> None:
        """Refresh in a thread until `close` is called; once. A failed build stops nothing."""
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                self.refresh()
            except PLUGIN_FAILURES as error:
                self._refused(f"the site can't be built: {reason_of(error)}")
            self._stop.wait(INTERVAL)

    def wait_for_change(self, version: int, seconds: float) -> int:
        """The version of the site, at once if it is not `version`, else after at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, timeout=seconds)
            return self.version

    def close(self) -> None:
        """Stop watching, and delete the site."""
        self._stop.set()
        with self._changed:
            self.version += 1
            self._changed.notify_all()
        if self._thread.is_alive():
            # A build would make the folder again.
            self._thread.join(PATIENCE)
        shutil.rmtree(self._base, ignore_errors=True)


def _facts(paths: Iterable[Path]) -> Signature:
    """The size and time of each path that is there."""
    facts = set()
    for path in paths:
        with suppress(OSError):  # it was deleted meanwhile
            status = path.stat()
            facts.add((str(path), status.st_size, status.st_mtime_ns))
    return frozenset(facts)
