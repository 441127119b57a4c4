"""What tasks/TASK.html shows: one table for each evaluation set, over all dtypes, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...api.record import Record
from ...api.spec import digest_of
from .. import formats
from ..board import Board
from ..row import Row
from . import svg
from .figure import View, figure
from .index import floor_text
from .plots import board_curves, extent, profiles, validation_curves
from .series import series

#: Rows that a table shows at first; a longer one is laid out when a reader asks for the rest.
MOST_ROWS = 100


def by_evaluation(boards: Iterable[Board]) -> dict[str, list[Board]]:
    """The boards of each evaluation set, by a key: one board per dtype."""
    groups: dict[str, list[Board]] = {}
    for board in boards:
        groups.setdefault(_evaluation_key(board.records[0]), []).append(board)
    return groups


def _evaluation_key(record: Record) -> str:
    """Records with the same key were evaluated on the same draws, in any dtype."""
    evaluation, spec = record.main, record.spec
    content = [spec.task, spec.task_version, evaluation.task_args, evaluation.digest]
    return digest_of(content)[:12]


def evaluation_title(board: Board) -> str:
    """The task's arguments, after its title if that is not its name."""
    args = formats.arguments(board.evaluation.task_args) or "default arguments"
    return args if board.title == board.task else f"{board.title} · {args}"


def section(key: str, boards: Sequence[Board]) -> View:
    """One evaluation set of a task: a table over all its dtypes, and figures."""
    rows = [row for board in boards for row in board.rows]
    ends = {board.dtype: _interval_ends(board) for board in boards}
    views = [
        _row(row, ends[board.dtype], hidden=board is not boards[0] or i >= MOST_ROWS)
        for board in boards
        for i, row in enumerate(board.rows)
    ]
    plots = [
        plot
        for board in boards
        for plot in (profiles(board), *board_curves(board), *validation_curves(board))
        if plot
    ]
    # The hidden rows of a long table stay text until they are asked for, so that the page loads.
    is_long = len(views) > MOST_ROWS
    return {
        "key": key,
        "title": evaluation_title(boards[0]),
        "board": boards[0],
        "rows": [view for view in views if not (is_long and view["hidden"])],
        "rest": [view for view in views if is_long and view["hidden"]],
        "count": len(views),
        "most": MOST_ROWS,
        "fitting": len(boards[0].rows),
        "score": formats.score_name(boards[0].ranking),
        "ends": [
            f"{dtype}: {' … '.join(formats.score(end, boards[0].ranking) for end in pair)}"
            for dtype, pair in ends.items()
        ],
        "floors": [
            (board.floor.label, board.dtype, floor_text(board)) for board in boards if board.floor
        ],
        "has_tracks": any(board.has_tracks for board in boards),
        "tracks": sorted({row.track for row in rows if row.track}),
        "stale": [row for row in rows if row.stale],
        "dtypes": [board.dtype for board in boards],
        "default_dtype": boards[0].dtype,
        "models": sorted({row.record.spec.model for row in rows}),
        "origins": sorted({row.origin for row in rows}),
        "budgets": sorted({row.steps for row in rows if row.steps is not None}),
        "figures": [figure(plot) for plot in plots],
        "has_digits": boards[0].has_digits,
    }


def hyperparameter_figures(boards: Sequence[Board]) -> list[View]:
    """The score against every number in which the task's runs differ."""
    plots = series([record for board in boards for record in board.records])
    return [figure(plot) for plot in plots]


def _interval_ends(board: Board) -> tuple[float, float]:
    """The range of the interval plots in a board's table."""
    bounds = [v for row in board.rows for v in (row.bounds.low, row.bounds.high, row.score)]
    ends = extent(bounds, log=False)
    return (0.0, 1.0) if ends is None or ends[0] == ends[1] else ends


def _row(row: Row, ends: tuple[float, float], hidden: bool) -> View:
    """A row as text, and the numbers that its columns are sorted by."""
    statistics, ranking, environment = row.statistics, row.record.ranking, row.record.environment
    low, high = row.bounds.low, row.bounds.high
    return {
        "row": row,
        "hidden": hidden,
        "rank": formats.rank(row),
        "origin": formats.origin(row),
        "score": formats.score(row.score, ranking),
        "interval": formats.score_interval(row),
        "plot": svg.interval(low, high, row.score, ends),
        "missing": formats.missing_digits(row),
        "median": formats.number(statistics.median, ranking.scale),
        "worst": formats.number(row.worst, ranking.scale),
        "mean": formats.number(statistics.mean),
        "mean_interval": formats.interval(row.mean_bounds, seeds=row.seeds),
        "notes": formats.notes(row),
        "above": formats.difference(row.above, ranking.scale),
        "budget": formats.budget(row.steps, row.batch),
        "time": formats.seconds(row.seconds),
        "device": formats.device(environment.device, environment.threads),
        "sort": {
            "rank": row.rank.first if row.rank else 1e9,
            "score": -1e308 if row.score is None and row.has_digits else _sortable(row.score),
            "median": _sortable(statistics.median),
            "worst": _sortable(row.worst),
            "mean": _sortable(statistics.mean),
        },
    }


def _sortable(value: float | None) -> float:
    """A number that a script can sort by: what is not finite counts as very large."""
    return value if value is not None and np.isfinite(value) else 1e308
