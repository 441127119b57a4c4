"""A study of several tasks as a matrix: every model's best score on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from ..board import Board
from ..descriptions import Descriptions
from ..formats import MARKS
from ..row import Row
from .figure import View
from .matrix import column_of

#: Fewer tasks are compared in the figure alone.
FEWEST_TASKS = 3


def study_matrix(boards: Sequence[Board], about: Descriptions) -> View | None:
    """A column per board; a row per model, origin of its weights and track.

    None for a study of few tasks. A cell's color goes from chance to the floor, as on the home
    page.
    """
    if len({board.task for board in boards}) < FEWEST_TASKS:
        return None
    kinds = dict.fromkeys(_kind(row) for board in boards for row in board.rows)
    columns = [column_of("", board, board.rows, about) for board in boards]
    decimals = [column["decimals"] for column in columns]
    return {
        "columns": columns,
        # Trained models come first.
        "rows": [
            line
            for kind in sorted(kinds, key=lambda kind: (kind[0] != "trained", kind))
            for line in _lines(kind, boards, decimals, about)
        ],
    }


def _kind(row: Row) -> tuple[str, str]:
    return row.origin, row.track_name


def _lines(
    kind: tuple[str, str], boards: Sequence[Board], decimals: Sequence[int], about: Descriptions
) -> list[View]:
    """The models of one origin and track, which alone are compared with each other.

    `decimals` are those of each board's column.
    """
    rows = [[row for row in board.rows if _kind(row) == kind] for board in boards]
    cells = [
        column_of("", board, of_kind, about, decimals=count)["cells"]
        for board, of_kind, count in zip(boards, rows, decimals, strict=True)
    ]
    origin, track = kind
    return [
        {
            "mark": MARKS[origin],
            "title": about.model(name).title,
            "kind": f"{origin}, {track}" if track else origin,
            "cells": [of_board.get(name) for of_board in cells],
        }
        for name in dict.fromkeys(name for of_board in cells for name in of_board)
    ]
