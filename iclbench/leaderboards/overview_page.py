"""README.md of the boards: each model's best row on each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..api.record import Record
from ..api.tuning import NEGLIGIBLE
from ..console import counted
from . import formats
from .board import Board
from .bounds import ONE_SEED, RANGE
from .escaping import markdown
from .level import has_digits_level, level_name, level_of
from .overview import Overview, overviews
from .page_parts import GENERATED, bullets, evaluation_in_words, table_of
from .row import Row, in_track


def overview_page(boards: Sequence[Board], digest: str, *, parquet: bool = True) -> str:
    """README.md: title × model for each dtype and origin, and links to all other pages.

    `digest` is the SHA-256 of rows.csv, by which these boards can be cited.
    """
    rows = [row for board in boards for row in board.rows]
    tasks = sorted({board.task for board in boards})
    tables = "[rows.csv](rows.csv)" + (" and [rows.parquet](rows.parquet)" if parquet else "")
    parts = [
        f"{GENERATED}\n\n# Leaderboards",
        "These are boards of iclbench: the best result of each model on each task. They hold "
        f"{counted(len(rows), 'record')} of {counted(len(tasks), 'task')}.{_budgets(rows)}",
        "Each column is one board of its task: the one whose models were trained with a budget,"
        " or else the one with the most models. A table of another origin uses the same board if "
        "that board has such rows. If not, it uses another one, so compare the settings in the "
        "lists below the tables first. A task's page has all boards, and ranks each track "
        "separately. Each cell shows one row of the model on that board, chosen in this order of "
        "preference: random initial weights before given ones; seeds 0, 1, 2, … before one seed, "
        "chosen seeds, much more training than the budget, or a training that diverged for every "
        "seed; the track of most of the board's models (if several tie, the longest) "
        "before other tracks, which the cell names; then the best row. What a cell shows depends "
        "on the task:",
        bullets(
            [
                "the mean digits of the error, if the task has an attainable error or a target. "
                f"{formats.DIGITS}",
                "the digits of the mean error, for other errors without a floor;",
                "the mean of the metric otherwise.",
            ]
        ),
        "The marks:",
        bullets(_marks()),
        "To measure every row again, run `iclbench verify records` in this folder; some rows need "
        "an extra of iclbench, which the command names. All rows are in "
        f"{tables}. [Precision](precision.md) compares each model's digits with the floor's, and "
        "shows the share of prompts that are solved to each number of digits. "
        "[Stale rows](stale.md) lists results of code that has changed since.",
        f"To cite this version of the boards, give the SHA-256 of rows.csv: `{digest}`.",
        "Tasks: " + ", ".join(f"[{task}](tasks/{task}.md)" for task in tasks) + ".",
    ]
    parts += [_overview(overview) for overview in overviews(boards)]
    return "\n\n".join(parts) + "\n"


def _marks() -> list[str]:
    return [
        "The first line is the floor. *attainable* is the error of the exact answer to the rounded "
        "prompt, rounded once to the dtype, or half a unit in the last place if that is larger. A "
        "*target* is a reference that models may beat.",
        "**Bold**: at the floor; the median and the 99th percentile are at most one digit worse.",
        "*chance*: the model ignores how the examples relate to the query. "
        f"{'; '.join(f'{mark} {text}' for text, mark in formats.CHANCE_MARKS.items())}.",
        f"{formats.UNTUNED}: not tuned. {formats.TUNED_AT_CHANCE}: tuned at chance; no trial of "
        f"the search was clearly better than chance (by over {NEGLIGIBLE:g} digits, or "
        f"{NEGLIGIBLE:.0%} of the mean at chance, and by twice its standard error), so noise may "
        "have chosen the settings. If the search kept the recipe's own settings over a better "
        "trial, noise has chosen nothing, and there is no mark.",
        f"{formats.OFF_BUDGET}: training used over {formats.NEAR_BUDGET:.0%} more or less than its "
        f"budget. {RANGE}: the seeds differ too much for a meaningful mean. "
        f"{ONE_SEED}: one seed; the model has no row with several "
        "seeds from random weights.",
    ]


def _budgets(rows: Sequence[Row]) -> str:
    """What the trained rows had, since it decides their order as much as the models do."""
    trained = [row for row in rows if row.is_trained]
    if not trained:
        return ""
    sizes = Counter(row.track for row in trained)
    # Those with open budgets last.
    counts = [
        f"{sizes[track]} {in_track(track)}" for track in sorted(sizes, key=lambda t: (not t, t))
    ]
    return (
        f" {len(trained)} of them were trained: {', '.join(counts)}. A track is a budget "
        "of time per seed, such as *10m* for ten minutes; rows with open budgets, in track *open*, "
        "were trained for as long as their authors chose. A trained result shows what the model "
        "reached with its budget, on its machine, at its size and with the settings of its search. "
        "It is not the best that the architecture can do."
    )


def _overview(overview: Overview) -> str:
    headings = [f"[{markdown(b.title)}](tasks/{b.task}.md)" for b in overview.boards]
    lines = []
    floors = [_floor_cell(board) for board in overview.boards]
    if any(floors):
        lines.append({"model": "floor"} | dict(zip(headings, floors, strict=True)))
    for model in overview.models:
        best = [overview.best.get((board.title, model)) for board in overview.boards]
        cells = [
            "" if row is None else _overview_cell(row, board)
            for row, board in zip(best, overview.boards, strict=True)
        ]
        lines.append({"model": markdown(model)} | dict(zip(headings, cells, strict=True)))
    about = [f"- {_setting(board, overview.origin)}" for board in overview.boards]
    title = f"## {overview.dtype} · {formats.MARKS[overview.origin]} {overview.origin}"
    return f"{title}\n\n{table_of(lines)}\n\n" + "\n".join(about)


def _setting(board: Board, origin: str) -> str:
    """The setting of a column: the task's arguments, the prompts, what ranks, and the track."""
    first = board.first
    ranked = f"{level_name(first)} of {board.ranking.metric}"
    better = "" if has_digits_level(first) else f" ({board.ranking.better} is better)"
    track = board.tracks[0] if origin == "trained" else ""
    return (
        f"{markdown(board.title)} v{board.task_version}: {evaluation_in_words(board.evaluation)}, "
        f"{ranked}{better}{f', track {track}' if track else ''}"
    )


def _floor_cell(board: Board) -> str:
    if board.floor is None:
        return ""
    value = level_of(board.first, board.floor.statistics).value
    return f"{_level(board.first, value)} {markdown(board.floor.label)}"


def _overview_cell(row: Row, board: Board) -> str:
    text = _level(row.record, level_of(row.record).value)
    parts = [f"**{text}**" if row.at_floor else text, *formats.cell_marks(row)]
    is_other = row.is_trained and row.track != board.tracks[0]
    track = f"track {row.track_name}" if is_other else ""
    notes = [
        "chance" if row.record.chance else "",
        formats.diverged(row),
        markdown(formats.start(row)),
        track,
    ]
    return ", ".join(filter(None, [" ".join(parts), *notes]))


def _level(record: Record, value: float | None) -> str:
    return formats.level(value, has_digits_level(record))
