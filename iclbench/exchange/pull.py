"""pull: records or a task's prompts from the hub or a folder, after checking them."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import NamedTuple

from ..files import path_of
from .document import Export
from .hub import Hub, repository
from .listing import left_out, listing
from .pulling import pull_export, pull_records
from .sources import FolderSource, HubSource, Source


class Pulled(NamedTuple):
    """What was copied.

    `records` are the records' paths, or none where `folder` holds the prompts of `export`.
    `left_out` names files that lie where records do and are not named like one.
    """

    folder: Path
    records: list[Path]
    export: Export | None
    left_out: list[str]
    verified: bool


def pull(
    source: str | Path,
    out: str | Path | None = None,
    *,
    verify: bool | None = None,
    max_size: float = 10.0,
) -> Pulled:
    """Copy published records or prompts into the folder `out` if all checks pass.

    `source` is a model repository `USER/NAME`, a dataset `datasets/USER/NAME`, or a folder; a
    `Path` is a folder. `out` is by default `results` for records, the source's name for prompts.
    `verify` measures each model again, or generates each prompt again: by default, unless there are
    several records. `max_size` is in GB.

    Raises UsageError for a source without records and for a folder that is in use, RunError where
    the hub can't be read, and RecordError where anything is wrong; then nothing is copied.
    """
    given = _source(source)
    listed = listing(given)
    most = max_size * 1e9
    if listed.document is not None:
        measure = verify is not False
        folder = path_of(out or PurePath(given.name).name)
        export = pull_export(given, listed, folder, measure=measure, most=most)
        return Pulled(folder, [], export, [], measure)
    measure = len(listed.records) == 1 if verify is None else verify
    folder = path_of(out or "results")
    paths = pull_records(given, listed, folder, measure=measure, most=most)
    return Pulled(folder, paths, None, left_out(listed), measure)


def _source(source: str | Path) -> Source:
    # A Path loses its leading `./`, by which a text says that USER/NAME is a folder.
    on_hub = None if isinstance(source, Path) else repository(source)
    if on_hub is None:
        return FolderSource(path_of(source))
    return HubSource(Hub(), on_hub[0] or "model", on_hub[1])
