"""Which evaluation of a task stands for it: one with a track of training budgets comes first.

Rows of a track had the same budget, so their differences are those of the models; elsewhere each
row chose its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...api.budget import Budget
from ...api.record import Record
from ...api.spec import digest_of
from ..board import Board, comparable_facts
from ..build import by_task
from ..descriptions import Description
from ..grouping import grouped
from ..groups import by_training
from ..representative import representing
from ..row import Row
from ..wording import duration

#: What a page calls the budgets of rows without a track.
OPEN_BUDGETS = "open budgets"
#: The same of one row.
OPEN_BUDGET = "open budget"


def by_evaluation(boards: Iterable[Board]) -> dict[str, list[Board]]:
    """The boards of each evaluation set, by a key: one board per dtype.

    Sets of the task's newest version come first, of these those whose rows have a track, and among
    those the one with the most rows.
    """
    groups = grouped(boards, lambda board: _evaluation_key(board.first))
    return dict(sorted(groups.items(), key=_standing))


def _standing(group: tuple[str, list[Board]]) -> tuple[int, bool, int]:
    boards = group[1]
    has_tracks = any(board.has_tracks for board in boards)
    return -boards[0].task_version, not has_tracks, -sum(len(board.rows) for board in boards)


def _evaluation_key(record: Record) -> str:
    """Records with the same key are comparable, except for their dtype."""
    return digest_of(comparable_facts(record, dtype=False))[:12]


def main_boards(boards: Iterable[Board]) -> list[Board]:
    """The boards of the first evaluation set of each task."""
    first = [next(iter(by_evaluation(members).values())) for members in by_task(boards).values()]
    return [board for group in first for board in group]


def trained(board: Board, track: str) -> list[Row]:
    """The trained rows of a track, best first; an empty one stands for rows without."""
    return best_first(row for row in board.rows if row.is_trained and row.track == track)


def best_first(rows: Iterable[Row]) -> list[Row]:
    """The rows by their scores; equal ones keep their order."""
    return sorted(rows, key=lambda row: -row.goodness)


def best_by_model(rows: Iterable[Row]) -> list[Row]:
    """The best row of each model, best first; see `representing`."""
    by_model = grouped(best_first(representing(rows)), lambda row: row.record.spec.model)
    return [best for best, *_ in by_model.values()]


def longest_first(tracks: Iterable[str]) -> list[str]:
    """Tracks in the order of tables: the most training first, and open budgets last."""
    return sorted(tracks, key=by_training)


def track_in_words(track: str, joint: str = ", ") -> str:
    """What a track allows, such as `10m, 10 minutes of core time for each seed`."""
    try:
        budget = Budget.parse(track)
    except ValueError:
        return track
    of = "of one GPU" if budget.on_gpu else "of core time"
    return f"{track}{joint}{duration(budget)} {of} for each seed"


def budget_in_words(track: str) -> str:
    """What a track allows, such as `10 core minutes per seed`; open budgets for an empty one."""
    try:
        budget = Budget.parse(track)
    except ValueError:
        return f"track {track}" if track else OPEN_BUDGETS
    return f"{duration(budget, 'GPU' if budget.on_gpu else 'core')} per seed"


def in_words(board: Board, tracks: Sequence[str], about: Description) -> str:
    """The budgets of a plot's rows and the task's arguments, on a line."""
    args = about.settings(board.evaluation.task_args)
    ends = dict.fromkeys(budget_in_words(track) for track in (tracks[-1], tracks[0]))
    return " · ".join(filter(None, [" to ".join(ends), args]))
