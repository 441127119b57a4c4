"""What tasks/TASK.html shows: what is asked, a plot, a table for each evaluation set, figures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ...api.errors import IclbenchError
from ...api.task import Task
from ...plugins import host
from .. import formats
from ..board import Board
from ..descriptions import Description, Descriptions
from ..row import Row, better
from . import citation, dotplot, settings, svg
from .example import first_example
from .figure import View, figure, script_json
from .formula import mathml
from .home import floor_text
from .minus import with_minus
from .plots import board_curves, extent, profiles, validation_curves
from .series import series

#: Rows that a table shows at first; a longer one is laid out when a reader asks for the rest.
MOST_ROWS = 100
#: Models in the plot of a page, and its width in pixels.
MOST_DOTS, PLOT_WIDTH = 20, 400


def task(name: str, boards: Sequence[Board], about: Descriptions) -> View:
    """The whole page of a task; the evaluation set that stands for it comes first."""
    described = about.task(name)
    evaluations = settings.by_evaluation(boards)
    sections = [section(key, group, about) for key, group in evaluations.items()]
    board: Board = sections[0]["board"]
    return {
        "name": name,
        "about": described,
        "formula": mathml(described.formula),
        "floor": floor_in_words(name, boards),
        "score": score_in_words(board, described),
        "tracks": tracks_in_words(boards),
        "example": first_example(name, [s["board"] for s in sections]),
        "sections": sections,
        "figures": hyperparameter_figures(boards, about),
        "bibtex": script_json("\n".join([
            *(paper.bibtex(key) + "\n" for key, paper in described.papers), citation.bibtex(),
        ])),
    }  # fmt: skip


def floor_in_words(name: str, boards: Sequence[Board]) -> str:
    """What the floor of the task is, by the task itself, and what it is on its first board."""
    kind = boards[0].evaluation.floor.kind
    text = {
        "exact": "The floor is the attainable error: that of the exact answer to the rounded "
        "prompt, rounded once to the dtype.",
        "bayes": "The floor is the error of the best predictor of an answer that the prompt does "
        "not determine.",
        "bound": "The floor is a bound that no model is expected to pass.",
        "none": "There is no floor; the best row is the reference.",
    }[kind]
    try:
        summary = host().load("task", name, Task).floor_summary
    except IclbenchError:
        summary = ""
    if not summary:
        return text
    plain = summary.replace("`", "")
    return f"{text} Here: {plain[:1].lower()}{plain[1:]}"


def score_in_words(board: Board, about: Description) -> str:
    """What ranks, on which scale."""
    metric = about.metric(board.ranking.metric)
    if board.has_digits:
        return f"Ranked by the mean digits of the {metric}. {formats.DIGITS}"
    return f"Ranked by the mean {metric}; {board.ranking.better} is better."


def tracks_in_words(boards: Sequence[Board]) -> str:
    """The tracks of the trained rows, each explained."""
    names = sorted({row.track for board in boards for row in board.rows if row.is_trained})
    parts = [settings.track_in_words(name) for name in names]
    listed = "; ".join(parts)
    return f"A track is a class of training budgets. Here: {listed}." if parts else ""


def evaluation_title(board: Board, about: Description) -> str:
    """The task's arguments in words, after its title if that is not its name."""
    args = about.settings(board.evaluation.task_args) or "default arguments"
    return args if board.title == board.task else f"{board.title} · {args}"


def section(key: str, boards: Sequence[Board], about: Descriptions) -> View:
    """One evaluation set of a task: a plot, a table over all its dtypes, and figures."""
    rows = [row for board in boards for row in board.rows]
    views = list(_table_rows(boards))
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
        "args": formats.arguments(boards[0].evaluation.task_args),
        "budget": ", ".join(track or settings.OPEN for track in settings.tracks(boards[0])),
        "board": boards[0],
        "dots": [
            drawn
            for board in boards
            for track in settings.tracks(board)
            if (drawn := _dots(board, track, about))
        ],
        "marks": {mark.kind for board in boards for mark in dotplot.references(board)},
        "rows": [view for view in views if not (is_long and view["hidden"])],
        "rest": [view for view in views if is_long and view["hidden"]],
        "count": len(rows),
        "most": MOST_ROWS,
        "fitting": len(boards[0].rows),
        "score": formats.score_name(boards[0].ranking),
        "floors": [
            (board.floor.label, board.dtype, with_minus(floor_text(board)))
            for board in boards
            if board.floor
        ],
        "stale": [row for row in rows if row.stale],
        "profiles": [figure(plot) for board in boards if (plot := profiles(board, about))],
        "figures": [figure(plot) for plot in plots],
        "has_digits": boards[0].has_digits,
        "best_first": "down" if better(boards[0].ranking) == "higher" else "up",
        **_choices(boards, rows),
    }


def _dots(board: Board, track: str, about: Descriptions) -> str | None:
    """The dot plot of a track's rows."""
    return dotplot.board_dots(board, track, about, MOST_DOTS, root="../", width=PLOT_WIDTH)


def _choices(boards: Sequence[Board], rows: Sequence[Row]) -> View:
    """What the filters offer."""
    return {
        "tracks": sorted({row.track for row in rows if row.track}),
        "has_tracks": any(row.track for row in rows),
        "dtypes": [board.dtype for board in boards],
        "default_dtype": boards[0].dtype,
        "models": sorted({row.record.spec.model for row in rows}),
        "origins": sorted({row.origin for row in rows}),
        "budgets": sorted({row.steps for row in rows if row.steps is not None}),
    }


def hyperparameter_figures(boards: Sequence[Board], about: Descriptions) -> list[View]:
    """The score against every number in which the task's runs differ."""
    plots = series([record for board in boards for record in board.records], about)
    return [figure(plot) for plot in plots]


def _table_rows(boards: Sequence[Board]) -> Iterator[View]:
    """The rows of every dtype; where a board ranks several tracks, each group has a heading.

    At first the page shows those of the first board, MOST_ROWS of them at most.
    """
    numbers = itertools.count()
    for board in boards:
        ends, has_headings = _interval_ends(board), len(settings.tracks(board)) > 1
        hidden_from = MOST_ROWS if board is boards[0] else 0
        numbered = enumerate(board.rows)
        for name, members in itertools.groupby(numbered, key=lambda pair: _group_name(pair[1])):
            group, pairs = next(numbers), list(members)
            if has_headings:
                hidden = pairs[0][0] >= hidden_from
                heading = f"{name} · {board.dtype}"
                yield {"heading": heading, "group": group, "hidden": hidden}
            for i, row in pairs:
                yield _row(row, ends, group, hidden=i >= hidden_from)


def _group_name(row: Row) -> str:
    """The rows that a row is ranked among."""
    if not row.is_trained:
        return "Lines of reference, not ranked"
    return f"Track {settings.track_in_words(row.track)}" if row.track else "Open budgets"


def _interval_ends(board: Board) -> tuple[float, float]:
    """The worst and the best value of the interval plots in a board's table, left and right.

    As in the dot plot, digits below LEAST_DIGITS and means worse than chance are at the left edge.
    """
    values = [v for row in board.rows for v in (row.bounds.low, row.bounds.high, row.score)]
    low, high = extent(values, log=False) or (0.0, 1.0)
    worst, best = (low, high) if better(board.ranking) == "higher" else (high, low)
    chance = [mark.value for mark in dotplot.references(board) if mark.kind == "chance"]
    for limit in [dotplot.LEAST_DIGITS] if board.has_digits else chance:
        worst = limit if low < limit < high else worst
    return (worst, best) if worst != best else (0.0, 1.0)


def _row(row: Row, ends: tuple[float, float], group: int, hidden: bool) -> View:
    """A row as text, and the numbers that its columns are sorted by."""
    statistics, ranking, environment = row.statistics, row.record.ranking, row.record.environment
    operations = row.record.operations.training if row.record.operations else None
    return {
        "row": row,
        "group": group,
        "hidden": hidden,
        "rank": formats.rank(row),
        "mark": formats.mark(row),
        "origin": formats.origin(row),
        "score": with_minus(formats.score(row.score, ranking)),
        "interval": with_minus(formats.score_interval(row)),
        "plot": svg.interval(row.bounds.low, row.bounds.high, row.score, ends),
        "missing": formats.missing_digits(row) if row.has_digits else _beside_floor(row),
        "median": with_minus(formats.number(statistics.median, ranking.scale)),
        "worst": with_minus(formats.number(row.worst, ranking.scale)),
        "mean": with_minus(formats.number(statistics.mean)),
        "mean_interval": with_minus(formats.interval(row.mean_bounds, seeds=row.seeds)),
        "notes": formats.notes(row),
        "above": with_minus(formats.difference(row.above, ranking.scale)),
        "budget": formats.budget(row.steps, row.batch),
        "parameters": formats.parameters(row.record),
        "compute": "" if operations is None else scientific(operations),
        "time": formats.seconds(row.seconds),
        "device": formats.device(environment.device, environment.threads),
        "sort": {
            "rank": row.rank.first if row.rank else 1e9,
            "score": -1e308 if row.score is None and row.has_digits else _sortable(row.score),
            "median": _sortable(statistics.median),
            "worst": _sortable(row.worst),
            "mean": _sortable(statistics.mean),
            "compute": operations or 0,
        },
    }


def scientific(value: float) -> str:
    """A large number as 1.2·10¹²."""
    exponent = int(np.floor(np.log10(value))) if value > 0 else 0
    return f"{value / 10.0**exponent:.1f}·{svg.power(exponent)}" if exponent > 3 else f"{value:g}"


def _beside_floor(row: Row) -> str:
    """The difference of a mean to the floor's; empty without a floor."""
    if row.score is None or row.floor_score is None:
        return ""
    return with_minus(f"{row.score - row.floor_score:+.3g}")


def _sortable(value: float | None) -> float:
    """A number that a script can sort by: what is not finite counts as very large."""
    return value if value is not None and np.isfinite(value) else 1e308
