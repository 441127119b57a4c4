"""The boards that commands print once runs are done, and what can be done with their records."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import counted, shell_path
from ..display.table import Output

if TYPE_CHECKING:
    from ..api.record import Record


def require_columns_of_boards(output: Output) -> None:
    """Refuse columns that no board has before anything runs."""
    from ..display.boards import require_columns

    require_columns(output)


def print_boards_of(records: list[Record], out: Path, output: Output) -> list[str]:
    """Print the boards of these records of a folder, as the options ask for.

    Returns a line for each record that has no row, since its values are missing or were changed.
    """
    from ..display.boards import print_boards
    from ..leaderboards.reading import boards_of
    from ..runs.store import RecordStore

    problems: list[str] = []
    tables = boards_of(records, RecordStore(out), problems.append)
    print_boards(tables, output)
    return [f"{problem}; `run --force` makes the record again" for problem in problems]


def say_what_next(
    records: list[Record], out: Path, *, failed: bool, suite: str | None = None
) -> None:
    """Say on standard error where the records are, and what can be done with them.

    Where runs `failed`, records of solvers may be all that is left, and are not what was asked for.
    """
    if not records:
        return
    trained = [record for record in records if record.spec.origin == "trained"]
    shown = trained[:1] or ([] if failed else records[-1:])
    folder = shell_path(out)
    commands = {
        **{f"iclbench show {shell_path(r.path)}": "its numbers and curves" for r in shown},
        f"iclbench leaderboard show {folder}": "all tables in this folder",
        **(
            {f"iclbench leaderboard suite {shlex.quote(suite)} {folder}": "the suite's scores"}
            if suite
            else {}
        ),
        f"iclbench verify {folder}": "measure the records again",
    }
    count = counted(len(records), "record")
    print(f"\n{count} of this command, in {out}. Next steps:", file=sys.stderr)
    for command, purpose in commands.items():
        print(f"  {command}  # {purpose}", file=sys.stderr)
