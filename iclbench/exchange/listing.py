"""Which files of a source a pull may take: paths of the few forms that iclbench writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..api.errors import RecordError
from ..api.names import is_plain_name, visible
from ..runs.heldout import SUFFIX
from ..runs.store import is_record_name
from .document import DOCUMENT
from .hub import HubFile
from .sources import Source

#: The most files of a repository that are looked at.
MOST_FILES = 200_000

_OBJECT = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{64}\.(safetensors|jsonl|f64\.zst)")


@dataclass(frozen=True)
class Listing:
    """The files of a source that a pull may take; all others are left where they are."""

    records: list[HubFile]
    objects: dict[str, HubFile]
    document: HubFile | None
    others: dict[str, HubFile]


def listing(source: Source) -> Listing:
    """Sort a source's files by their paths; raises RecordError for a path that leads outside."""
    entries = source.entries()
    if len(entries) > MOST_FILES:
        raise RecordError(f"{source.name} has {len(entries):,} files; at most {MOST_FILES:,}")
    for entry in entries:
        _require_inside(source.name, entry.path)
    by_path = {entry.path: entry for entry in entries}
    objects = {path: entry for path, entry in by_path.items() if _OBJECT.fullmatch(path)}
    records = [entry for path, entry in sorted(by_path.items()) if _is_record(path)]
    others = {p: e for p, e in by_path.items() if p not in objects and not _is_record(p)}
    return Listing(records, objects, by_path.get(DOCUMENT), others)


def _require_inside(name: str, path: str) -> None:
    parts = path.split("/")
    outside = any(part in {"", ".", ".."} for part in parts) or "\\" in path or ":" in path
    if outside or not path.isprintable() or len(path) > 500:
        raise RecordError(
            f"{name} names the file {visible(repr(path), 100)}, which is not a plain path in it"
        )


def _is_record(path: str) -> bool:
    parts = path.split("/")
    return len(parts) == 2 and is_plain_name(parts[0]) and is_record_name(Path(parts[1]))


def written_by_iclbench(paths: Iterable[str]) -> list[str]:
    """The files of a repository that have names of a push.

    Names that any repository may have count only beside records, or beside a dataset's document.
    """
    paths = list(paths)
    of_records = [
        path
        for path in paths
        if _is_record(path.replace(SUFFIX, ".json")) or _OBJECT.fullmatch(path)
    ]
    known: set[str] = set()
    if any(map(_is_record, paths)):
        known |= {"README.md", "spec.json", "model.safetensors", "rows.parquet", "curves.parquet"}
    if DOCUMENT in paths:
        known |= {DOCUMENT, "README.md", "croissant.json"}
        known |= {p for p in paths if re.fullmatch(r"data/[a-z0-9-]+\.parquet", p)}
    return [*of_records, *(path for path in paths if path in known)]


def left_out(listed: Listing) -> list[str]:
    """The JSON files that lie where records do, and are not named like one."""
    return sorted(
        path
        for path in listed.others
        if re.fullmatch(r"(?!checkpoints/|tunings/)[^/]+/[^/]+\.json", path)
        and not path.endswith(SUFFIX)
    )
