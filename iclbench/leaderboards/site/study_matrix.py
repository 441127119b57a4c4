"""A study of several tasks as a matrix: every model's best score on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from ..board import Board
from ..descriptions import Descriptions
from .figure import View
from .matrix import column_of

#: Fewer tasks are compared in the figure alone.
FEWEST_TASKS = 3


def study_matrix(boards: Sequence[Board], about: Descriptions) -> View | None:
    """A column per board and a row per model; None for a study of few tasks.

    A cell's color goes from chance to the floor, as on the home page.
    """
    if len({board.task for board in boards}) < FEWEST_TASKS:
        return None
    columns = [column_of("", board, board.rows, about) for board in boards]
    models = dict.fromkeys(name for column in columns for name in column["cells"])
    rows = [
        {"title": about.model(name).title, "cells": [c["cells"].get(name) for c in columns]}
        for name in models
    ]
    return {"columns": columns, "rows": rows}
