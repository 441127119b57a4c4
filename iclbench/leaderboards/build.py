"""`leaderboard build`: the tables of a folder of records as Markdown, CSV and Parquet."""

from __future__ import annotations

from pathlib import Path

from ..api.errors import UsageError
from ..files import write_atomically
from ..runs.store import RecordStore
from .flat import as_csv, as_parquet, flat
from .pages import MADE, overview_page, precision_page, task_page
from .tables import Board, leaderboard


def build(folder: str | Path = "leaderboards", parquet: bool = True) -> list[Path]:
    """Write the tables of `folder`/records into `folder`, and return the files.

    They follow from the records alone. Raises RecordError for a damaged record, and UsageError
    where there is none; nothing is written then.
    """
    folder = Path(folder)
    store, found = published(folder)
    tasks: dict[str, list[Board]] = {}
    for board in found:
        tasks.setdefault(board.records[0].spec.task, []).append(board)
    rows = flat(found, store)
    files = {"README.md": overview_page(found).encode()}
    files["precision.md"] = precision_page(found).encode()
    for task, boards in tasks.items():
        files[f"tasks/{task}.md"] = task_page(task, boards, store).encode()
    files["rows.csv"] = as_csv(rows)
    if parquet:
        files["rows.parquet"] = as_parquet(rows)
    for name, data in files.items():
        write_atomically(folder / name, data)
    for page in sorted(folder.glob("tasks/*.md")):
        # A page of a task that has no records any more; one by hand stays.
        if f"tasks/{page.name}" not in files and page.read_text("utf-8").startswith(MADE):
            page.unlink()
    return [folder / name for name in files]


def published(folder: Path) -> tuple[RecordStore, list[Board]]:
    """The store of `folder`/records and its boards; raises UsageError where there are none."""
    records = folder / "records"
    if not records.is_dir():
        raise UsageError(f"there is no folder {records}")
    found = leaderboard(records)
    if not found:
        raise UsageError(f"there are no records in {records}")
    return RecordStore(records), found
