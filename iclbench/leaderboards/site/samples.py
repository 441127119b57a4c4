"""Samples of a task: its first prompts with every model's error there, and graded endings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...runs.objects import Objects
from ...runs.store import read_values
from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..row import Row
from .answers import compared, first_answers
from .figure import View
from .prompts import Prompts, answers_at, values_at
from .settings import OPEN_BUDGET
from .task_words import evaluation_titles

#: Models beside a prompt.
MOST_ROWS = 40


def sample_sets(
    boards: Sequence[Board], folder: Path, prompts: Prompts, about: Descriptions
) -> list[View]:
    """The samples of each board that has some; `folder` holds the records."""
    views = [
        _samples(board, title, folder, prompts, about)
        for board, title in zip(boards, evaluation_titles(boards, about), strict=True)
    ]
    return [view for view in views if view is not None]


def _samples(
    board: Board, title: str, folder: Path, prompts: Prompts, about: Descriptions
) -> View | None:
    drawn = prompts.of(board.first)
    graded = compared(board.rows, Objects(folder))
    if isinstance(drawn, str) and not graded:
        return None
    rows = board.rows[:MOST_ROWS]
    return {
        "title": title,
        "metric": about.metric_of(board),
        "graded": graded,
        "trainings": _trainings(graded),
        "has_answers": any(row.record.main.answers for row in rows),
        "seeds": max((row.seeds for row in board.rows), default=1) or 1,
        "prompts": [] if isinstance(drawn, str) else _with_models(drawn, rows, folder),
    }


def _trainings(graded: Sequence[View]) -> dict[str, str]:
    """The track and the training budget of each trained row that wrote an ending, by its id."""
    rows = {e["row"].record.id: e["row"] for one in graded for e in one["endings"]}
    return {
        run_id: f"{row.track or OPEN_BUDGET}, {formats.budget(row.steps, row.batch)}"
        for run_id, row in rows.items()
        if row.is_trained
    }


def _with_models(drawn: Sequence[View], rows: Sequence[Row], folder: Path) -> list[View]:
    """The prompts, each with every row's answers and errors, and with what was asked there."""
    views = [(row, first_answers(row.record, Objects(folder))) for row in rows]
    asked = [(row, view) for row, view in views if view and view["one_per_prompt"]]
    errors = [(row, _values(row, folder)) for row in rows]
    return [
        prompt
        | {
            "rows": [
                (
                    row,
                    _kind(row),
                    _answer_cells(answers_at(row.record, i, prompt["classes"])),
                    cells[i],
                )
                for row, cells in errors
                if cells
            ],
            "asked": [(row, v["pairs"][i]) for row, v in asked if i < len(v["pairs"])],
        }
        for i, prompt in enumerate(drawn)
    ]


def _kind(row: Row) -> str:
    """The origin of a row, and the training budget that tells it from another of its model."""
    return f"{row.origin}, {row.track or OPEN_BUDGET}" if row.is_trained else row.origin


def _answer_cells(by_seed: Sequence[Sequence[str]]) -> list[str]:
    """The answer of every seed where it is one number, or else the numbers of the first seed's."""
    if all(len(numbers) == 1 for numbers in by_seed):
        return [number for (number,) in by_seed]
    return list(by_seed[0])


def _values(row: Row, folder: Path) -> list[list[str]]:
    """The ranked metric at each of the first prompts, for every seed; [] where it is of cases."""
    metric = row.record.ranking.metric
    values = read_values(folder / row.file, {metric: row.record.main.values[metric]})
    lines = values_at(row.record, values)
    return lines[0]["prompts"] if lines else []
