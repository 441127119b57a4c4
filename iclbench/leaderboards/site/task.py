"""What tasks/TASK.html shows: one table for each evaluation set, over all dtypes, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...api.record import Record
from ...api.spec import digest_of
from .. import formats
from ..board import Board
from ..row import Row, has_digits
from . import svg
from .figure import View, figure
from .index import floor_text
from .plots import board_curves, extent, profiles
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
    """The task's arguments."""
    return formats.arguments(board.evaluation.task_args) or "default arguments"


def section(key: str, boards: Sequence[Board]) -> View:
    """One evaluation set of a task: a table over all its dtypes, and figures."""
    ranking = boards[0].ranking
    rows = [row for board in boards for row in board.rows]
    ends = {board.dtype: _interval_ends(board) for board in boards}
    views = [
        _row(row, ends[board.dtype], hidden=board is not boards[0] or i >= MOST_ROWS)
        for board in boards
        for i, row in enumerate(board.rows)
    ]
    plots = [plot for board in boards for plot in (profiles(board), *board_curves(board)) if plot]
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
        "ends": [
            f"{dtype}: {formats.interval(*pair, ranking.scale)}" for dtype, pair in ends.items()
        ],
        "floors": [(board.dtype, floor_text(board)) for board in boards],
        "dtypes": [board.dtype for board in boards],
        "default_dtype": boards[0].dtype,
        "models": sorted({row.record.spec.model for row in rows}),
        "origins": sorted({row.origin for row in rows}),
        "budgets": sorted({row.steps for row in rows if row.steps is not None}),
        "figures": [figure(plot) for plot in plots],
        "has_digits": has_digits(ranking),
    }


def hyperparameter_figures(boards: Sequence[Board]) -> list[View]:
    """The score against every number in which the task's runs differ."""
    plots = series([record for board in boards for record in board.records])
    return [figure(plot) for plot in plots]


def _interval_ends(board: Board) -> tuple[float, float]:
    """The range of the interval plots in a board's table."""
    is_log = board.ranking.scale == "log"
    bounds = [v for r in board.rows for v in (r.statistics.low, r.statistics.high, r.score)]
    ends = extent(bounds, is_log)
    if ends is None or ends[0] == ends[1]:
        return (1e-1, 1e1) if is_log else (0.0, 1.0)
    return ends


def _row(row: Row, ends: tuple[float, float], hidden: bool) -> View:
    """A row as text, and the numbers that its columns are sorted by."""
    statistics, scale = row.statistics, row.record.ranking.scale
    return {
        "row": row,
        "hidden": hidden,
        "origin": formats.origin(row),
        "digits": formats.digits(row.digits),
        "missing": formats.missing_digits(row.missing_digits),
        "median": formats.number(statistics.median, scale),
        "mean": formats.number(statistics.mean, scale),
        "interval": formats.interval(statistics.low, statistics.high, scale),
        "plot": svg.interval(statistics.low, statistics.high, row.score, ends, scale == "log"),
        "above": formats.difference(row.above, scale),
        "budget": formats.budget(row.steps, row.batch),
        "time": formats.seconds(row.seconds),
        "device": formats.device(row.device, row.threads),
        "sort": {
            "median": _sortable(statistics.median),
            "mean": _sortable(statistics.mean),
            "digits": -1e308 if row.digits is None else _sortable(row.digits),
        },
    }


def _sortable(value: float | None) -> float:
    """A number that a script can sort by: what is not finite counts as very large."""
    return value if value is not None and np.isfinite(value) else 1e308
