"""The rows of a task's table: their cells as text, and the numbers that its columns sort by."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from .. import formats
from ..board import Board
from ..ranking import Better
from ..row import Row
from . import dotplot, settings, svg
from .figure import View
from .magnitudes import extent
from .minus import with_minus
from .ticks import power


def table_rows(boards: Sequence[Board], most: int) -> Iterator[View]:
    """The rows of every dtype; where a board ranks several tracks, each group has a heading.

    At first the page shows those of the first board, `most` of them at most.
    """
    numbers = itertools.count()
    for board in boards:
        axis, has_headings = _interval_axis(board), len(board.tracks) > 1
        hidden_from = most if board is boards[0] else 0
        numbered = enumerate(board.rows)
        for name, members in itertools.groupby(numbered, key=lambda pair: _group_name(pair[1])):
            group, pairs = next(numbers), list(members)
            if has_headings:
                hidden = pairs[0][0] >= hidden_from
                heading = f"{name} · {board.dtype}"
                yield {"heading": heading, "group": group, "hidden": hidden}
            for i, row in pairs:
                yield _row(row, axis, group, hidden=i >= hidden_from)


def _group_name(row: Row) -> str:
    """The rows that a row is ranked among."""
    if not row.is_trained:
        return "Reference rows, not ranked"
    return f"Track {settings.track_in_words(row.track)}" if row.track else "Open budgets"


def _interval_axis(board: Board) -> dotplot.Axis:
    """The worst and the best value of the interval plots in a board's table, left and right.

    As in the dot plot, digits below LEAST_DIGITS and means worse than chance are at the left edge,
    and errors over many magnitudes are on a logarithmic scale.
    """
    marks = dotplot.references(board)
    scored = [row for row in board.rows if row.score is not None]
    if scored and (shown := dotplot.axis_of(board, scored, marks)).log:
        return dotplot.Axis(shown.high, shown.low, log=True)
    values = [v for row in board.rows for v in (row.bounds.low, row.bounds.high, row.score)]
    low, high = extent(values, log=False) or (0.0, 1.0)
    worst, best = (low, high) if board.ranking.better_score == "higher" else (high, low)
    chance = [mark.value for mark in marks if mark.kind == "chance"]
    for limit in [dotplot.LEAST_DIGITS] if board.has_digits else chance:
        worst = limit if low < limit < high else worst
    return dotplot.Axis(*((worst, best) if worst != best else (0.0, 1.0)), log=False)


def _row(row: Row, axis: dotplot.Axis, group: int, hidden: bool) -> View:
    """A row as text, and the numbers that its columns are sorted by."""
    statistics, ranking, environment = row.statistics, row.record.ranking, row.record.environment
    operations = row.record.operations.training if row.record.operations else None
    return {
        "row": row,
        "group": group,
        "hidden": hidden,
        "rank": formats.rank(row),
        "mark": formats.mark(row),
        "origin": formats.origin(row),
        "score": with_minus(formats.score(row.score, ranking)),
        "interval": with_minus(formats.score_interval(row)),
        "beside_mean": _beside_mean(row),
        "plot": svg.interval(row.bounds.low, row.bounds.high, row.score, axis[:2], axis.log),
        "accuracy": "" if row.accuracy is None else formats.linear(row.accuracy),
        "missing": formats.missing_digits(row) if row.has_digits else _beside_floor(row),
        "median": with_minus(formats.number(statistics.median, ranking.scale)),
        "worst": with_minus(formats.number(row.worst, ranking.scale)),
        "mean": with_minus(formats.number(statistics.mean)),
        "mean_interval": with_minus(formats.interval(row.mean_bounds, seeds=row.seeds)),
        "notes": formats.notes(row),
        "used": formats.used(row),
        "above": with_minus(formats.difference(row.above, ranking.scale, row.one_seed_above)),
        "budget": formats.budget(row.steps, row.batch),
        "parameters": formats.parameters(row.record),
        "compute": "" if operations is None else scientific(operations),
        "time": formats.seconds(row.seconds),
        "device": formats.device(environment.device, environment.threads),
        "sort": {
            "rank": row.rank.first if row.rank else 1e9,
            # More digits are better, whatever their metric's direction.
            "score": _sortable(row.score, ranking.better_score),
            "accuracy": -1.0 if row.accuracy is None else row.accuracy,
            "missing": _sortable(_from_floor(row), ranking.better_score),
            "median": _sortable(statistics.median, ranking.better),
            "worst": _sortable(row.worst, ranking.better),
            "mean": _sortable(statistics.mean, ranking.better),
            "compute": operations or 0,
        },
    }


def _beside_mean(row: Row) -> str:
    """The median beside a mean whose seeds differ too much for an interval; else empty."""
    if row.has_digits or row.bounds.kind != "range over seeds":
        return ""
    median = formats.number(row.statistics.median, row.record.ranking.scale)
    return with_minus(f"median {median}")


def scientific(value: float) -> str:
    """A large number as 1.2·10¹²."""
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·{power(int(exponent))}" if int(exponent) > 3 else f"{value:g}"


def _beside_floor(row: Row) -> str:
    """The difference of a mean to the floor's; empty without a floor."""
    difference = _from_floor(row)
    return "" if difference is None else with_minus(f"{difference:+.3g}")


def _from_floor(row: Row) -> float | None:
    """The score less the floor's, or None without one."""
    if row.score is None or row.floor_score is None:
        return None
    return row.score - row.floor_score


def _sortable(value: float | None, better: Better) -> float:
    """A number that a script can sort by: what is not finite is worse than all others."""
    worst = 1e308 if better == "lower" else -1e308
    return value if value is not None and np.isfinite(value) else worst
