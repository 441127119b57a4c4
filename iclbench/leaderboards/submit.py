"""submit: records verified and copied into published leaderboards, from Python."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from ..console import report
from ..files import LEADERBOARDS, path_of
from ..sweeps.record_paths import record_paths
from .submission import examine_all, publish_all, store_in


class Submitted(NamedTuple):
    """The paths of the published records, and why others are not published."""

    records: list[Path]
    refused: list[str]


def submit(
    records: str | PathLike[str] | Sequence[str | PathLike[str]],
    to: str | Path = LEADERBOARDS,
    *,
    device: str = "auto",
    held_out: bool = False,
    trusted: bool = False,
) -> Submitted:
    """Verify records and copy those that hold into the leaderboards in the folder `to`.

    `records` are records, their paths, and folders of records. `held_out` evaluates them on newly
    drawn prompts too, which is for maintainers; `trusted` allows records that name files or code. A
    refused record does not stop the others.

    Raises UsageError for a folder without records, or one that can't be written.
    """
    store = store_in(path_of(to))
    given = [records] if isinstance(records, str | PathLike) else records
    paths = record_paths([path_of(path) for path in given])
    accepted, refused = examine_all(paths, store, device, trusted=trusted)
    if not accepted:
        return Submitted([], refused)
    published, failures = publish_all(accepted, store, held_out=held_out, say=report)
    return Submitted(published, refused + failures)
