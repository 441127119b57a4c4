"""Whether a model can answer a board's prompts at all, as its plugin says."""

from __future__ import annotations

from typing import Any

from ...api.architecture import Architecture
from ...api.errors import PLUGIN_FAILURES
from ...api.task import Task
from ...plugins import host
from ..board import Board
from .prompts import small_task


class Support:
    """Asks each model once for each board; loads each task once."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task[Any] | None] = {}
        self._reasons: dict[tuple[int, str], str] = {}

    def reason_against(self, model: str, board: Board) -> str:
        """Why the model with its usual settings can't do the board; empty if it can.

        Also empty if the task or the model is not installed, has other arguments now, or fails.
        """
        key = id(board), model
        if key not in self._reasons:
            try:
                self._reasons[key] = self._ask(model, board)
            except PLUGIN_FAILURES:  # a plugin's own mistake must not stop the site
                self._reasons[key] = ""
        return self._reasons[key]

    def _ask(self, model: str, board: Board) -> str:
        task = self._task(board)
        if task is None:
            return ""
        architecture: Architecture = host().load("model", model, Architecture)()
        return architecture.supports(task.signature, architecture.Config()) or ""

    def _task(self, board: Board) -> Task[Any] | None:
        if id(board) not in self._tasks:
            self._tasks[id(board)] = None
            self._tasks[id(board)] = small_task(board.task, board.evaluation.task_args, 1)
        return self._tasks[id(board)]
