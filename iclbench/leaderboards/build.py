"""`leaderboard build`: write the tables of a folder of records as Markdown, CSV and Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from pathlib import Path

from ..api.errors import UsageError
from ..console import report, shell_path
from ..files import LEADERBOARDS, RECORDS, staged, write_atomically
from ..runs.code import installed_code
from ..runs.store import RecordStore
from .board import Board
from .cited import read_cited
from .curves import curves_table
from .descriptions import Descriptions
from .export import as_csv, as_parquet, export_table
from .findings import judgements
from .findings_page import findings_page
from .grouping import grouped
from .overview_page import overview_page
from .page_parts import GENERATED
from .pages import precision_page, stale_page, task_page
from .reading import Refused, sound_boards


def build(
    folder: str | Path = LEADERBOARDS, parquet: bool = True, refused: Refused = report
) -> list[Path]:
    """Write the tables of `folder`/records into `folder`, and return the files.

    They follow from the records, `folder`/cited.toml and `folder`/findings.toml, and take words for
    tasks and models from installed plugins. stale.md compares the records' code with what is
    installed. `refused` gets a line for each record that is damaged and left out. Raises UsageError
    if that is most of them, one of the two files is not valid, or `folder` can't be written; the
    tables stay as they were then.
    """
    folder = Path(folder)
    boards = _mostly_sound(folder / RECORDS, refused)
    cited = read_cited(folder, (board.task for board in boards))
    table = export_table(row for board in boards for row in board.rows)
    files = {"rows.csv": as_csv(table)}
    digest = hashlib.sha256(files["rows.csv"]).hexdigest()
    files["README.md"] = overview_page(boards, digest, parquet=parquet).encode()
    files["precision.md"] = precision_page(boards).encode()
    for task, task_boards in by_task(boards).items():
        files[f"tasks/{task}.md"] = task_page(task, task_boards, cited.get(task, ())).encode()
    judged = judgements(folder, refused)
    if judged:
        files["findings.md"] = findings_page(judged, Descriptions(refused)).encode()
    files["stale.md"] = stale_page(boards, installed_code()).encode()
    curves = curves_table(row.record for board in boards for row in board.rows)
    if parquet:
        files["rows.parquet"] = as_parquet(table)
    if parquet and len(curves):
        files["curves.parquet"] = as_parquet(curves)
    with staged(folder) as new:
        for name, data in files.items():
            write_atomically(new / name, data)
    _delete_outdated(folder, files)
    return [folder / name for name in files]


def _mostly_sound(records: Path, refused: Refused) -> list[Board]:
    """The boards; raises UsageError where fewer records are sound than damaged.

    In a clone without the files of values, tables of the few that were made there would replace
    those of all.
    """
    lines: list[str] = []
    try:
        boards = published(records, lines.append)
    except UsageError:
        for line in lines:
            refused(line)
        raise
    sound = sum(len(board.rows) for board in boards)
    if len(lines) > sound:
        total = len(lines) + sound
        raise UsageError(
            f"{len(lines)} of {total} records can't be used, so the tables stay as they were. "
            f"The first: {lines[0]}"
        )
    for line in lines:
        refused(line)
    return boards


def _delete_outdated(folder: Path, files: Container[str]) -> None:
    """Delete what an earlier build wrote and this one did not; pages written by hand stay."""
    for page in (*sorted(folder.glob("tasks/*.md")), *folder.glob("findings.md")):
        name = page.relative_to(folder).as_posix()
        if name not in files and page.read_bytes().startswith(GENERATED.encode()):
            page.unlink()
    for name in ("rows.parquet", "curves.parquet"):
        if name not in files:
            (folder / name).unlink(missing_ok=True)


def published(records: Path, refused: Refused, *, whole: bool = False) -> list[Board]:
    """The boards of a folder of records, as `sound_boards`; raises UsageError if there is none."""
    if not records.is_dir():
        hint = ""
        if records.parent.is_dir():
            above = shell_path(records.parent)
            hint = (
                f"; `iclbench view {above}` shows results, and `iclbench submit {above} --to "
                "FOLDER` copies them into such a folder"
            )
        raise UsageError(f"there is no folder {records}{hint}")
    boards = sound_boards(RecordStore(records), refused, whole=whole)
    if not boards:
        raise UsageError(f"there are no sound records in {records}")
    return boards


def by_task(boards: Iterable[Board]) -> dict[str, list[Board]]:
    """The boards of each task, in order of appearance."""
    return grouped(boards, lambda board: board.task)
