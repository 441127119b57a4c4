"""The rows of a task's table: their cells as text, and the numbers that its columns sort by."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ...console import counted
from .. import formats
from ..board import Board
from ..ranking import Better
from ..row import Row
from . import dotplot, settings
from .figure import View
from .interval_plot import interval_plot
from .minus import with_minus
from .ticks import power


def table_rows(boards: Sequence[Board], most: int) -> Iterator[View]:
    """The rows of every dtype; on a board of trained rows, each group has a heading.

    At first the page shows those of the first board, `most` of them at most.
    """
    numbers = itertools.count()
    for board in boards:
        plot, has_headings = _interval_plots(board), bool(board.tracks)
        hidden_from = most if board is boards[0] else 0
        numbered = enumerate(board.rows)
        for name, members in itertools.groupby(numbered, key=lambda pair: _group_name(pair[1])):
            group, pairs = next(numbers), list(members)
            if has_headings:
                heading = group_heading(name, [row for _, row in pairs])
                hidden = pairs[0][0] >= hidden_from
                yield {"heading": f"{heading} · {board.dtype}", "group": group, "hidden": hidden}
            for i, row in pairs:
                yield _row(row, plot(row), group, hidden=i >= hidden_from)


def _group_name(row: Row) -> str:
    """The rows that a row is ranked among."""
    if not row.is_trained:
        return "Reference rows"
    return f"Track {row.track}" if row.track else "Open budgets"


def group_heading(name: str, rows: Sequence[Row]) -> str:
    """The group, how many of its rows are ranked, and what its track allows."""
    ranked = sum(row.rank is not None for row in rows)
    count = counted(ranked, "ranked row") if ranked else "not ranked"
    allowed = settings.track_in_words(rows[0].track).partition(", ")[2] if rows[0].track else ""
    return f"{name}: {' · '.join(filter(None, [count, allowed]))}"


def _interval_plots(board: Board) -> Callable[[Row], str]:
    """What draws the intervals of a board's rows, on the axis of its dot plot."""
    marks = dotplot.references(board)
    axis = dotplot.axis_of(board, [row for row in board.rows if row.score is not None], marks)
    if dotplot.is_reversed(board):
        axis = dotplot.Axis(axis.high, axis.low, axis.log)
    return lambda row: interval_plot(row.bounds.low, row.bounds.high, row.score, axis, marks)


def _row(row: Row, plot: str, group: int, hidden: bool) -> View:
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
        "plot": plot,
        "accuracy": "" if row.accuracy is None else formats.linear(row.accuracy),
        "missing": formats.missing_digits(row) if row.has_digits else _beside_floor(row),
        "median": with_minus(formats.number(statistics.median, ranking.scale)),
        "worst": with_minus(formats.number(row.worst, ranking.scale)),
        "mean": with_minus(formats.number(statistics.mean)),
        "mean_interval": with_minus(formats.interval(row.mean_bounds, seeds=row.seeds)),
        "notes": formats.notes(row),
        "facts": list(filter(None, [row.track, *_facts(row)])),
        "held_out": formats.held_out(row),
        "above": with_minus(formats.difference(row.above, ranking.scale, row.mark_above)),
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
            "compute": "" if operations is None else operations,
        },
    }


def _facts(row: Row) -> list[str]:
    """What stands beside the row's name: what a reader must not miss."""
    return [row.chance, formats.diverged(row), formats.used(row)]


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
    return "" if difference is None else with_minus(f"{difference:+#.3g}".rstrip("."))


def _from_floor(row: Row) -> float | None:
    """The score less the floor's, or None without one."""
    if row.score is None or row.floor_score is None:
        return None
    return row.score - row.floor_score


def _sortable(value: float | None, better: Better) -> float:
    """A number that a script can sort by: what is not finite is worse than all others."""
    worst = 1e308 if better == "lower" else -1e308
    return value if value is not None and np.isfinite(value) else worst
