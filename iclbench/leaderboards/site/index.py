"""What index.html shows: a heat map of models and tasks for each dtype."""

from __future__ import annotations

from collections.abc import Sequence

from .. import formats
from ..board import Board
from ..overview import Overview
from ..row import Row
from .figure import View
from .plots import extent


def heat_map(overview: Overview) -> View:
    """The overview of a dtype: one line per model and origin, one column per title."""
    columns = [_column(overview, board) for board in overview.boards]
    rows = [
        {
            "mark": formats.marks(overview.rows(line)),
            "origin": line.origin,
            "model": line.model,
            "cells": [_cell(overview.best.get((c["title"], line)), c["ends"]) for c in columns],
        }
        for line in overview.lines
    ]
    return {"dtype": overview.dtype, "columns": columns, "rows": rows}


def floor_text(board: Board) -> str:
    """The floor's digits or mean; empty if there is none."""
    return "" if board.floor is None else formats.score(board.floor.score, board.ranking)


def _column(overview: Overview, board: Board) -> View:
    rows = [row for (title, _), row in overview.best.items() if title == board.title]
    args = formats.arguments(board.evaluation.task_args)
    return {
        "task": board.task,
        "title": board.title,
        "metric": "digits" if board.has_digits else f"mean {board.ranking.metric}",
        "about": f"v{board.task_version}, {args}, {board.evaluation.prompts} prompts",
        "floor": floor_text(board),
        "label": board.floor.label if board.floor else "",
        "ends": _color_range(rows, board),
    }


def _color_range(rows: Sequence[Row], board: Board) -> tuple[float, float]:
    """What has no color, and full color: 0 and the attainable digits, or the range of the rows."""
    floor = board.floor
    if board.has_digits and floor is not None and floor.score is not None:
        return 0.0, max(floor.score, 1e-9)
    return extent([row.goodness for row in rows], log=False) or (0.0, 1.0)


def _cell(row: Row | None, ends: tuple[float, float]) -> View | None:
    if row is None:
        return None
    low, high = ends
    part = 0.0 if high <= low else (min(max(row.goodness, low), high) - low) / (high - low)
    return {
        "row": row,
        "text": formats.score(row.score, row.record.ranking),
        "chance": row.chance,
        "percent": round(100 * part),
    }
