"""What tasks/TASK.html shows: what is asked, a plot, a table for each evaluation set, figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .. import formats
from ..arguments import argument_pairs
from ..board import Board
from ..descriptions import Descriptions
from ..rank_legend import undecided
from ..row import Row
from . import citation, dotplot, settings
from .example import first_example
from .figure import View, figures, script_json
from .formula import mathml
from .home import floor_text
from .minus import with_minus
from .plots import board_curves, profiles, validation_curves
from .series import series
from .table_legend import legend
from .task_table import table_rows
from .task_words import (
    RANK_TEST,
    evaluation_title,
    floor_in_words,
    inputs_in_words,
    measure_in_words,
    ranks_in_words,
    score_in_words,
    setting_in_words,
    told_apart_by_evaluation,
    told_apart_by_prompts,
    tracks_in_words,
)

#: Rows that a table shows at first; a longer one is laid out when a reader asks for the rest.
MOST_ROWS = 100
#: Models in the plot of a page, and its width in pixels.
MOST_DOTS, PLOT_WIDTH = 24, 420


def task(name: str, boards: Sequence[Board], about: Descriptions) -> View:
    """The whole page of a task; the evaluation set that stands for it comes first."""
    described = about.task(name)
    evaluations = settings.by_evaluation(boards)
    sections = [section(key, group, about) for key, group in evaluations.items()]
    explained: set[tuple[str, str]] = set()
    for view in sections:
        # Each mark above the first table that has it.
        view["legend"] = [entry for entry in view["legend"] if entry not in explained]
        explained.update(view["legend"])
    board: Board = sections[0]["board"]
    of_sections = [s["board"] for s in sections]
    names = told_apart_by_prompts([s["title"] for s in sections], of_sections)
    for view, title in zip(sections, told_apart_by_evaluation(names, of_sections), strict=True):
        view["title"] = title
    return {
        "name": name,
        "about": described,
        "formula": mathml(described.formula),
        "floor": floor_in_words(name, boards, about),
        "score": score_in_words(board, described),
        "tracks": tracks_in_words(boards),
        "ranks": ranks_in_words(boards),
        "inputs": inputs_in_words(boards, about),
        "rank_test": RANK_TEST,
        "example": first_example(name, of_sections),
        "sections": sections,
        "figures": figures(series([r for board in boards for r in board.records], about)),
        "bibtex": script_json("\n".join([
            *(paper.bibtex(key) + "\n" for key, paper in described.papers), citation.bibtex(),
        ])),
    }  # fmt: skip


def section(key: str, boards: Sequence[Board], about: Descriptions) -> View:
    """One evaluation set of a task: a plot, a table over all its dtypes, and figures."""
    rows = [row for board in boards for row in board.rows]
    tracks = {track for board in boards for track in board.tracks}
    views = list(table_rows(boards, MOST_ROWS))
    plots = [
        plot
        for board in boards
        for plot in (*board_curves(board, about), *validation_curves(board, about))
    ]
    # The hidden rows of a long table stay text until they are asked for, so that the page loads.
    is_long = len(views) > MOST_ROWS
    return {
        "key": key,
        "title": evaluation_title(boards[0], about.task(boards[0].task)),
        "setting": setting_in_words(boards[0], about.task(boards[0].task)),
        "args": argument_pairs(boards[0].evaluation.task_args),
        "budget": ", ".join(_named(boards[0].tracks)),
        "board": boards[0],
        "dots": [drawn for board in boards if (drawn := _dots(board, about))],
        "sizes": list(dotplot.sizes_of(tracks).items()) if len(tracks) > 1 else [],
        "legend": legend(boards),
        "marks": {mark.kind for board in boards for mark in dotplot.references(board)},
        "rows": [view for view in views if not (is_long and view["hidden"])],
        "rest": [view for view in views if is_long and view["hidden"]],
        "count": len(rows),
        "most": MOST_ROWS,
        "fitting": len(boards[0].rows),
        "ordered_by": _ordered_by(boards[0]),
        "beside": _beside(boards[0], views),
        "score": formats.score_title(boards[0].ranking, about.metric_of(boards[0])),
        "measure": measure_in_words(boards[0], about.task(boards[0].task)),
        "floors": [
            (board.floor.label, board.dtype, with_minus(floor_text(board)))
            for board in boards
            if board.floor
        ],
        "undecided": [
            f"{f'{board.dtype}: ' if len(boards) > 1 else ''}{text}"
            for board in boards
            if (text := undecided(board.undecided))
        ],
        "stale": [row for row in rows if row.stale],
        "profiles": figures(plot for board in boards if (plot := profiles(board, about))),
        "figures": figures(plots),
        "has_digits": boards[0].has_digits,
        "best_first": "down" if boards[0].ranking.better_score == "higher" else "up",
        **_choices(boards, rows, about),
    }


def _beside(board: Board, rows: Sequence[View]) -> str:
    """What rows are compared with: the floor or a target; empty if no row is."""
    if not any(row.get("missing") for row in rows):
        return ""
    return "target" if board.evaluation.floor.kind == "none" else "floor"


def _ordered_by(board: Board) -> str:
    """The track that orders the dot plot."""
    first = next(iter(board.tracks), "")
    return f"track {first}" if first else settings.OPEN_BUDGETS


def _named(tracks: Iterable[str]) -> list[str]:
    """Tracks as pages call them, in the order of tables."""
    return [track or settings.OPEN_BUDGETS for track in settings.longest_first(tracks)]


def _dots(board: Board, about: Descriptions) -> str | None:
    """The dot plot of a board's trained models, those of all tracks on one axis."""
    return dotplot.board_dots(board, board.tracks, about, MOST_DOTS, root="../", width=PLOT_WIDTH)


def _choices(boards: Sequence[Board], rows: Sequence[Row], about: Descriptions) -> View:
    """What the filters offer; steps by powers of ten."""
    models = {row.record.spec.model for row in rows}
    powers = {math.ceil(math.log10(row.steps)) for row in rows if row.steps}
    return {
        "tracks": settings.longest_first({row.track for row in rows if row.track}),
        "has_tracks": any(row.track for row in rows),
        "has_held_out": any(row.held_out for row in rows),
        "has_accuracy": any(row.accuracy is not None for row in rows),
        "dtypes": [board.dtype for board in boards],
        "default_dtype": boards[0].dtype,
        "models": sorted(models, key=lambda name: about.model(name).place),
        "origins": sorted({row.origin for row in rows}),
        "budgets": [10**power for power in sorted(powers)],
    }
