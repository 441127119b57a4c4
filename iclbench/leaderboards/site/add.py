"""What add.html shows: the commands that bring a reader's own model onto these boards."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter
from collections.abc import Sequence

from ...api.record import Record
from ..board import Board
from .figure import View

#: What a reader replaces in the commands.
NAME = "NAME"
#: The options of `run` that decide on which board a row is.
OF_BOARDS = ("--task", "--task-args", "--eval-prompts", "--eval-seed", "--dtype")


def add_view(suites: Sequence[View], boards: Sequence[Board]) -> View:
    """The command that trains a model like the rows of these boards, and the suite that it names.

    It is the suite with most rows, or the task with most if no suite has rows, and the track of
    most trained rows.
    """
    tracks = Counter(row.track for board in boards for row in board.rows if row.is_trained)
    del tracks[""]
    track = next((name for name, _ in tracks.most_common(1)), "")
    suite = max(suites, key=_rows, default=None)
    if suite is not None:
        what = f"--suite {suite['name']}"
    else:
        largest = max(boards, key=lambda board: len(board.rows))
        what = f"{_setting(largest.first)} --seeds 3"
    budget = f" --budget {track}" if track else ""
    return {
        "name": NAME,
        "run": f"iclbench run --model {NAME} {what}{budget}",
        "suite": suite["name"] if suite is not None else "",
        "track": track,
    }


def _setting(record: Record) -> str:
    """The options of a record's command that its board consists of."""
    try:
        words = shlex.split(record.command)
    except ValueError:  # a record that nobody has verified may have any text there
        words = []
    given = {"--task": record.spec.task, **dict(itertools.pairwise(words))}
    return shlex.join(part for o in OF_BOARDS if o in given for part in (o, given[o]))


def _rows(suite: View) -> int:
    return sum(len(part["rows"]) for part in suite["tables"])
