"""One prompt of a task, drawn small: its fields as tables of squares, or its text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ...api.errors import PLUGIN_FAILURES
from ...api.task import Task
from ..board import Board
from .figure import View
from .prompts import small_task

#: The rows and columns of a field that are drawn, and the pixels of a square.
MOST, SQUARE = 24, 10
#: The seed of the prompt: one that no board uses.
SEED = 20_000_017


class Drawn(NamedTuple):
    """A field: its name, its size in words, and its picture."""

    name: str
    size: str
    svg: str


def first_example(name: str, boards: Sequence[Board]) -> View | None:
    """The example of the first of a task's boards that has one, with the title of the board.

    The title is empty where it only repeats the task's name.
    """
    for board in boards:
        view = example(name, board.evaluation.task_args, board.dtype)
        if view is not None:
            return view | {"title": "" if board.title == name else board.title}
    return None


def example(name: str, task_args: dict[str, Any], dtype: str) -> View | None:
    """A prompt of the task with these arguments, and its answer.

    None if the task is not installed, has other arguments now, reads prompts from data that are not
    at hand, or fails.
    """
    try:
        return _example(small_task(name, task_args, 1), getattr(torch, dtype))
    except PLUGIN_FAILURES:  # a plugin's own mistake must not stop the site
        return None


def _example(task: Task[Any], dtype: torch.dtype) -> View | None:
    text = task.sample_text()
    if text is not None:
        return {"fields": [], "text": text}
    if type(task).evaluation_batches is not Task.evaluation_batches:
        return None
    batch = task.evaluation_batches(1, SEED, dtype)[0]
    prompt = batch.prompt
    repeated = {"tokens"} if len(prompt._fields) > 1 else set()
    fields = [_field(n, getattr(prompt, n)[0]) for n in prompt._fields if n not in repeated]
    return {"fields": [*fields, _field("answer", batch.target[0])], "text": None}


def _field(name: str, values: Tensor) -> Drawn:
    size = "×".join(map(str, values.shape)) or "1"
    table = values.reshape(-1, 1) if values.ndim < 2 else values.reshape(-1, values.shape[-1])
    if values.ndim == 1 and not values.is_floating_point():
        table = values.reshape(1, -1)
    shown = table[:MOST, :MOST]
    if shown.shape != table.shape:
        size = f"{'×'.join(map(str, shown.shape))} of {size}"
    return Drawn(name, size, _squares(name, shown))


def _squares(name: str, table: Tensor) -> str:
    """Real numbers as squares whose area is their size, colored by their sign; integers as text."""
    rows, columns = table.shape
    places = [(i, j) for i in range(rows) for j in range(columns)]
    if not table.is_floating_point():
        side = 18
        parts = [
            f'<text x="{(j + 0.5) * side}" y="{(i + 0.75) * side}" text-anchor="middle">'
            f"{int(table[i, j])}</text>"
            for i, j in places
        ]
    else:
        side = SQUARE + 2
        most = float(table.abs().max()) or 1.0
        parts = [_square(float(table[i, j]) / most, i, j, side) for i, j in places]
    return (
        f'<svg width="{columns * side}" height="{rows * side}" role="img" '
        f'aria-label="{escape(name)}">{"".join(parts)}</svg>'
    )


def _square(value: float, i: int, j: int, side: int) -> str:
    """The square of a value between −1 and 1, on its cell."""
    length = SQUARE * math.sqrt(abs(value))
    x, y = (j + 0.5) * side - length / 2, (i + 0.5) * side - length / 2
    sign = "positive" if value >= 0 else "negative"
    return (
        f'<rect class="cell" x="{j * side + 0.5}" y="{i * side + 0.5}" width="{side - 1}" '
        f'height="{side - 1}"/><rect class="{sign}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{length:.1f}" height="{length:.1f}"/>'
    )
