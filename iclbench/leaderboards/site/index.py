"""What index.html shows: a heat map of models and tasks for each dtype."""

from __future__ import annotations

from collections.abc import Sequence

from .. import formats
from ..board import Board
from ..overview import Overview
from ..row import Row, has_digits
from .figure import View
from .plots import extent


def heat_map(overview: Overview) -> View:
    """The overview of a dtype: one line per model, one column per task."""
    columns = [_column(overview, board) for board in overview.boards]
    rows = [
        {
            "model": model,
            "cells": [_cell(overview.best.get((c["task"], model)), c["ends"]) for c in columns],
        }
        for model in overview.models
    ]
    return {"dtype": overview.dtype, "columns": columns, "rows": rows}


def floor_text(board: Board) -> str:
    """The floor's digits or score; empty if there is none."""
    return "" if board.floor is None else formats.score(board.floor, board.ranking)


def _column(overview: Overview, board: Board) -> View:
    rows = [row for (task, _), row in overview.best.items() if task == board.task]
    args = formats.arguments(board.evaluation.task_args)
    return {
        "task": board.task,
        "metric": "digits" if has_digits(board.ranking) else board.ranking.metric,
        "about": f"v{board.task_version}, {args}, {board.evaluation.prompts} prompts",
        "floor": floor_text(board),
        "ends": _color_range(rows, board.rows[0]),
    }


def _color_range(rows: Sequence[Row], best: Row) -> tuple[float, float]:
    """What has no color, and full color: 0 and the attainable digits, or the range of the rows."""
    if best.missing_digits is not None and best.floor_digits is not None:
        return 0.0, max(best.floor_digits, 1e-9)
    return extent([_goodness(row) for row in rows], log=False) or (0.0, 1.0)


def _goodness(row: Row) -> float | None:
    """Digits, or the score with a sign that makes more better."""
    ranking = row.record.ranking
    if has_digits(ranking):
        return row.digits
    return -row.score if row.score is not None and ranking.better == "lower" else row.score


def _cell(row: Row | None, ends: tuple[float, float]) -> View | None:
    if row is None:
        return None
    low, high = ends
    goodness = _goodness(row)
    part = 0.0 if goodness is None or high <= low else (min(goodness, high) - low) / (high - low)
    return {
        "row": row,
        "text": formats.score(row, row.record.ranking),
        "mark": formats.MARKS[row.origin],
        "percent": round(100 * min(max(part, 0.0), 1.0)),
    }
