"""Costs as tables: what training and tuning took, and what so many digits took."""

from __future__ import annotations

from collections.abc import Sequence

from ..leaderboards.costs import CellCost, DigitsCost, sums_of
from .table import Cell, Column, Table

_WHOSE = (
    Column("board", fit="shorten", heads=True),
    Column("model", fit="wrap"),
    Column("track"),
)


def costs_table(cells: Sequence[CellCost]) -> Table:
    """A line per trained record in hours and operations of all seeds, above the sums."""
    columns = (
        *_WHOSE,
        Column("seeds", right=True, importance=3),
        Column("steps", right=True, importance=2, label="steps/seed"),
        Column("hours", right=True),
        Column("tuning", right=True),
        Column("operations", right=True, importance=1),
    )
    rows = [
        {
            "board": cell.board,
            "model": cell.model,
            "track": cell.track,
            "seeds": cell.seeds,
            "steps": Cell(f"{cell.steps:,}", cell.steps),
            "hours": _figure(cell.hours, ".3g"),
            "tuning": _tuning(cell),
            "operations": _figure(cell.operations, ".2e"),
        }
        for cell in cells
    ]
    sums = [line for text in sums_of(cells) for line in ("", text)]
    return Table(columns, rows, notes=["hours and operations are those of all seeds", *sums])


def digits_table(costs: Sequence[DigitsCost]) -> Table:
    """What one seed's training cost until the validation reached so many mean digits."""
    columns = (
        *_WHOSE,
        Column("digits", right=True),
        Column("steps", right=True),
        Column("seconds", right=True),
        Column("operations", right=True, importance=1),
    )
    rows = [
        {
            "board": cost.board,
            "model": cost.model,
            "track": cost.track,
            "digits": Cell(f"{cost.digits:g}", cost.digits),
            "steps": Cell("not reached" if cost.steps is None else f"{cost.steps:,}", cost.steps),
            "seconds": _figure(cost.seconds, ".3g"),
            "operations": _figure(cost.operations, ".2e"),
        }
        for cost in costs
    ]
    return Table(columns, rows)


def _tuning(cell: CellCost) -> Cell:
    """The hours of a tuning, with their kind where it ran elsewhere than the training."""
    hours = cell.tuning_hours
    if hours is None:
        return Cell("unknown", None)
    if not hours:
        return Cell("", 0.0)
    if cell.tuned_on_gpu == cell.on_gpu:
        return _figure(hours, ".3g")
    return Cell(f"{hours:.3g} {'device' if cell.tuned_on_gpu else 'core'}", hours)


def _figure(value: float | None, form: str) -> Cell:
    """A number; empty where it was not measured."""
    return Cell("" if value is None else format(value, form), value)
