"""Matrices of scores: rows by shift, and models by the state that they keep of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...api.errors import PLUGIN_FAILURES
from ...api.ranking import Ranking
from ...console import capitalized, counted
from ...runs.load import load_task
from ...runs.strangers import require_shipped_data
from .. import formats
from ..arguments import argument_pairs
from ..board import Board
from ..board_names import differing_arguments, told_apart
from ..descriptions import Description, Descriptions
from ..grouping import grouped
from ..representative import representing
from ..row import Row
from ..shift_table import Line, lost_legend, shift_lines, shifted_rows
from . import settings
from .figure import View, figure
from .magnitudes import extent, spans_magnitudes
from .minus import with_minus
from .plots import Plot, lines_of, name_of, names_of, plot
from .task_words import (
    evaluation_title,
    evaluation_titles,
    told_apart_by_evaluation,
    told_apart_by_prompts,
)


def shift_matrices(boards: Sequence[Board], about: Descriptions) -> list[View]:
    """The models of each board with shifts, under each shift of their records."""
    titles = evaluation_titles(boards, about)
    views = [_shift_matrix(b, title, about) for b, title in zip(boards, titles, strict=True)]
    return [view for view in views if view is not None]


def _shift_matrix(board: Board, title: str, about: Descriptions) -> View | None:
    """A board's shifts: a table for the lines in digits, and one for each other unit."""
    lines = shift_lines(board)
    if not lines:
        return None
    rows, task = shifted_rows(board), about.task(board.task)
    summaries = _shift_summaries(board)
    known = {row.record.spec.model for row in rows}
    missing = [row for row in board.rows if row.is_trained and row.record.spec.model not in known]
    return {
        "title": title,
        "columns": [
            (r.record.id, name, _training(r))
            for r, name in zip(rows, names_of(rows, about), strict=True)
        ],
        "parts": [
            [_shift_line(line, board.ranking, task) | {"about": summaries.get(line.name, "")}
             for line in members]
            for members in grouped(lines, lambda line: line.score).values()
        ],
        "lost": lost_legend() if any(any(line.lost) for line in lines) else "",
        "reasons": sorted({cell for line in lines for cell in line.cells if isinstance(cell, str)}),
        "missing": list(dict.fromkeys(about.model(r.record.spec.model).title for r in missing)),
    }  # fmt: skip


def _training(row: Row) -> str:
    """How long and with how many seeds a model was trained; else where its weights are from."""
    if not row.is_trained:
        return row.origin
    budget = f"track {row.track}" if row.track else settings.OPEN_BUDGET
    return f"{budget}, {counted(row.seeds, 'seed')}"


def _shift_summaries(board: Board) -> dict[str, str]:
    """What each shift of the board's task changes; empty if the task is not installed."""
    try:
        require_shipped_data(board.evaluation.task_args)
        task = load_task(board.task, **board.evaluation.task_args)
        return {name: shift.summary for name, shift in task.shifts.items()}
    except PLUGIN_FAILURES:
        return {}


def _shift_line(line: Line, ranking: Ranking, about: Description) -> View:
    values = [cell for cell in line.cells if isinstance(cell, float)]
    in_digits = line.score == "digits"
    write = formats.digits if in_digits else formats.linear
    if in_digits:
        ends = (0.0, max([line.floor or 0.0, *values, 1e-9]))
    else:
        ends = extent([*values, *([] if line.floor is None else [line.floor])], log=False) or (0, 1)
    reverse = not in_digits and ranking.better == "lower"
    return {
        "shift": line.shift,
        "score": "digits" if in_digits else f"mean {about.metric(ranking.metric)}",
        "floor": "" if line.floor is None else f"{line.floor_name} {with_minus(write(line.floor))}",
        "cells": [
            _cell(cell, ends, write, reverse=reverse, lost=line.bound if lost else "")
            | {"interval": " … ".join(with_minus(write(end)) for end in interval or ())}
            for cell, interval, lost in zip(line.cells, line.intervals, line.lost, strict=True)
        ],
    }


def _cell(
    value: float | str | None,
    ends: tuple[float, float],
    write: Callable[[float | None], str],
    *,
    reverse: bool,
    lost: str = "",
) -> View:
    """A score with its shade in percent; a reason why it does not apply, or nothing.

    `lost` is the sign before a score that is only a bound.
    """
    if not isinstance(value, float):
        return {"text": "" if value is None else "n/a", "reason": value or "", "percent": None}
    low, high = ends
    part = (min(max(value, low), high) - low) / (high - low) if high > low else float(reverse)
    return {
        "text": f"{lost} {with_minus(write(value))}".strip(),
        "reason": "",
        "percent": round(100 * (1 - part if reverse else part)),
    }


def state_views(boards: Sequence[Board], about: Descriptions) -> list[View]:
    """The score against the state of a layer in each track with two sizes of it or more."""
    return [
        _state_view(board, title, track, rows, about)
        for board, title in zip(boards, evaluation_titles(boards, about), strict=True)
        for track in settings.longest_first(board.tracks)
        if (rows := settings.trained(board, track))
        and len({row.record.state_bytes for row in rows} - {None}) > 1
    ]


def _state_view(
    board: Board, title: str, track: str, rows: Sequence[Row], about: Descriptions
) -> View:
    by_size = sorted(
        (row for row in rows if row.record.state_bytes is not None),
        key=lambda row: row.record.state_bytes or 0.0,
    )
    unknown = [row for row in rows if row.record.state_bytes is None]
    budget = f"track {track}" if track else settings.OPEN_BUDGETS
    return {
        "title": f"{title}, {budget}",
        "figure": figure(_state_plot(board, by_size, about)),
        "rows": [_state_row(row, board, about) for row in (*by_size, *unknown)],
        "score": _score_title(board, about.task(board.task)),
        "floor": (
            f"{board.floor.label}: {with_minus(formats.score(board.floor.score, board.ranking))}"
            if board.floor is not None and board.floor.score is not None else ""
        ),
    }  # fmt: skip


def _score_title(board: Board, about: Description) -> str:
    return formats.score_title(board.ranking, about.metric(board.ranking.metric))


def _state_plot(board: Board, rows: Sequence[Row], about: Descriptions) -> Plot:
    """A point with its interval for every row, and the floor."""
    points: list[Plot] = [
        {
            "x": [row.record.state_bytes],
            "y": [row.score],
            "low": [row.bounds.low],
            "high": [row.bounds.high],
        }
        for row in rows
    ]
    lines = lines_of(rows, points, about)
    floor = None if board.floor is None else board.floor.score
    if board.floor is not None and floor is not None and _is_near(floor, rows):
        ends = [rows[0].record.state_bytes, rows[-1].record.state_bytes]
        level = [floor] * 2
        lines.append({"name": board.floor.label, "x": ends, "y": level, "reference": True})
    metric = about.metric_of(board)
    score = formats.digits_of(metric) if board.has_digits else f"mean {metric}"
    return plot(
        capitalized(score), "state after a prompt, bytes per layer", score, lines,
        log=not board.has_digits and spans_magnitudes(
            v for line in lines for key in ("y", "low", "high") for v in line.get(key, ())
        ), log_x=True,
    )  # fmt: skip


def _is_near(floor: float, rows: Sequence[Row]) -> bool:
    """Whether a floor is no further from the scores than they are from each other.

    With one that is further away, all points would lie at one edge of the plot.
    """
    low, high = extent([row.score for row in rows], log=False) or (floor, floor)
    return low - (high - low) <= floor <= high + (high - low)


def _state_row(row: Row, board: Board, about: Descriptions) -> View:
    size = row.record.state_bytes
    return {
        "id": row.record.id,
        "label": name_of(row, about),
        "bytes": "unknown" if size is None else f"{size:,.0f}",
        "score": with_minus(formats.score(row.score, board.ranking)),
        "interval": with_minus(formats.score_interval(row)),
    }


def state_matrix(boards: Sequence[Board], about: Descriptions) -> View | None:
    """Trained models by size of state against evaluation sets and budgets, the best row of each.

    None unless two of them rank models of one dtype that tell their state.
    """
    columns = [
        (board, track, rows)
        for board in boards
        for track in settings.longest_first(board.tracks)
        if (rows := [r for r in settings.trained(board, track) if r.record.state_bytes is not None])
    ]
    if len(columns) < 2 or len({board.dtype for board, _, _ in columns}) > 1:
        return None
    best: dict[tuple[float, str], dict[int, Row]] = {}
    for number, (_, _, rows) in enumerate(columns):
        for row in representing(rows, _state_and_model):  # the best comes first
            line = best.setdefault(_state_and_model(row), {})
            line.setdefault(number, row)
    board = columns[0][0]
    scores = [row.score for cells in best.values() for row in cells.values()]
    chance = [row.score for of, _, _ in columns for row in of.rows if row.record.chance]
    ends = _from_chance(scores, chance, lower=board.ranking.better_score == "lower")
    lines = [
        {
            "model": about.model(model).title,
            "bytes": f"{state:,.0f}",
            "cells": [_best(cells.get(i), ends, board.ranking) for i in range(len(columns))],
        }
        for (state, model), cells in sorted(best.items())
    ]
    titles = _titles([(board, track) for board, track, _ in columns], about)
    return {"titles": titles, "lines": lines, "score": _score_title(board, about.task(board.task))}


def _state_and_model(row: Row) -> tuple[float, str]:
    return row.record.state_bytes or 0.0, row.record.spec.model


def _from_chance(
    scores: Sequence[float | None], chance: Sequence[float | None], *, lower: bool
) -> tuple[float, float]:
    """The ends of the shades: from chance, where it is known, to the best score."""
    low, high = extent(scores, log=False) or (0.0, 1.0)
    worst = extent(chance, log=False)
    if worst is None:
        return low, high
    return (low, max(low, worst[1])) if lower else (min(high, worst[0]), high)


def _best(row: Row | None, ends: tuple[float, float], ranking: Ranking) -> View:
    score = None if row is None or row.score is None else float(row.score)
    lower = ranking.better_score == "lower"
    cell = _cell(score, ends, lambda value: formats.score(value, ranking), reverse=lower)
    return cell | {"id": row.record.id if row else ""}


def _titles(columns: Sequence[tuple[Board, str]], about: Descriptions) -> list[str]:
    """Each evaluation set with its budget, and with what tells it from the others."""
    names = [
        f"{evaluation_title(board, about.task(board.task))}, {track or settings.OPEN_BUDGETS}"
        for board, track in columns
    ]
    boards = [board for board, _ in columns]
    names = told_apart_by_prompts(names, boards)
    differing = differing_arguments(names, [board.evaluation.task_args for board in boards])
    names = told_apart(names, [argument_pairs(args) for args in differing])
    return told_apart_by_evaluation(names, boards)
