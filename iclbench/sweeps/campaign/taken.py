"""Records that were made elsewhere: taken from the published boards into the output folder."""

from __future__ import annotations

from pathlib import Path

from ...api.spec import ResolvedSpec
from ...files import write_atomically
from ...runs.settings import Settings
from ...runs.store import RecordStore, read_record
from .apart import SEEDS, seed_settings


def take_seeds(published: Path, settings: Settings) -> None:
    """Copy the seeds that another machine has trained to those of the output folder.

    They lie in `published`/seeds. Raises RecordError for a damaged one.
    """
    theirs, ours = RecordStore(published / SEEDS), RecordStore(seed_settings(settings).out)
    for path in theirs.paths():
        _take(path, theirs, ours)


def take_record(published: Path, spec: ResolvedSpec, out: Path) -> None:
    """Copy a run's record from a folder of published ones, so that shifts can be added to it.

    Where it has none, nothing is copied. Raises RecordError for a damaged one.
    """
    theirs = RecordStore(published)
    path = theirs.path(spec)
    if path.exists():
        _take(path, theirs, RecordStore(out))


def _take(path: Path, theirs: RecordStore, ours: RecordStore) -> None:
    """Copy a record with its files, unless it is there."""
    target = ours.folder / path.relative_to(theirs.folder)
    if target.exists():
        return
    for reference in read_record(path).files():
        write_atomically(ours.objects.path(reference), theirs.objects.read(reference))
    write_atomically(target, path.read_bytes())
