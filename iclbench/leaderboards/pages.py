"""The Markdown pages of `leaderboard build`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ..api.record import EvaluationReport
from . import formats
from .board import Board
from .formats import LEGEND, MARKS
from .overview import Overview, overviews
from .row import PROFILE, Row, has_digits

#: The first line of every page, by which `build` recognizes pages that it may delete.
GENERATED = "<!-- made by `iclbench leaderboard build` from the records; do not edit -->"

_COLUMNS = {
    "rank": "right",
    "model": "left",
    "origin": "left",
    "median": "right",
    "mean": "right",
    "95% interval of the mean": "right",
    "digits": "right",
    "against the row above": "right",
    "seeds": "right",
    "over seeds": "right",
    "parameters": "right",
    "budget": "right",
    "time": "right",
    "device": "left",
}


def overview_page(boards: Sequence[Board]) -> str:
    """README.md: task × model for each dtype, and links to all other pages."""
    count = sum(len(board.rows) for board in boards)
    tasks = sorted({board.task for board in boards})
    parts = [
        f"{GENERATED}\n\n# Leaderboards",
        f"{count} records of {len(tasks)} tasks. A cell is a model's best row: the "
        "digits of its error, −log10, or what the task ranks by where that is no error. **Bold** "
        "is at the floor, the task's own reference in the same dtype, within half a digit. "
        f"{LEGEND}.",
        "Every row can be measured again: `iclbench verify leaderboards/records`. All rows are in "
        "[rows.csv](rows.csv) and [rows.parquet](rows.parquet); errors beside the floor, and how "
        "many prompts are solved to how many digits, in [precision.md](precision.md).",
        "Tasks: " + ", ".join(f"[{task}](tasks/{task}.md)" for task in tasks) + ".",
    ]
    parts += [_overview(overview) for overview in overviews(boards)]
    return "\n\n".join(parts) + "\n"


def _overview(overview: Overview) -> str:
    floors = {board.task: formats.score(board.floor, board.ranking) if board.floor else ""
              for board in overview.boards}  # fmt: skip
    lines = [{"model": "floor"} | floors]
    for model in overview.models:
        cells = {"model": model}
        for board in overview.boards:
            row = overview.best.get((board.task, model))
            cells[board.task] = "" if row is None else _overview_cell(row, board)
        lines.append(cells)
    about = [
        f"- `{board.task}` v{board.task_version}: {_evaluation(board.evaluation)}, "
        f"{board.ranking.statistic} {board.ranking.metric}"
        for board in overview.boards
    ]
    return f"## {overview.dtype}\n\n{_table(lines)}\n\n" + "\n".join(about)


def _overview_cell(row: Row, board: Board) -> str:
    text = formats.score(row, board.ranking)
    return f"{f'**{text}**' if row.at_floor else text} {MARKS[row.origin]}"


def _evaluation(evaluation: EvaluationReport) -> str:
    args = formats.arguments(evaluation.task_args)
    return (f"{args}; " if args else "") + f"{evaluation.prompts:,} prompts"


def task_page(task: str, boards: Sequence[Board]) -> str:
    """One task: a ranked table for each dtype, configuration and evaluation set."""
    parts = [
        f"{GENERATED}\n\n# {task}",
        f"[All tasks](../README.md) · {LEGEND}",
        "*against the row above* is the mean paired difference on the same prompts with its 95% "
        "interval, in digits gained where the task ranks by an error; `*` marks one that excludes "
        "0. Ranks with `=` can't be told from the first of that rank. *budget* is steps × prompts "
        "a step; *over seeds* the lowest and highest seed.",
    ]
    parts += [_section(board) for board in boards]
    return "\n\n".join(parts) + "\n"


def _section(board: Board) -> str:
    evaluation, ranking = board.evaluation, board.ranking
    title = f"## {board.dtype} · {_evaluation(evaluation)}"
    about = (
        f"Version {board.task_version}, ranked by the {ranking.statistic} {ranking.metric}, "
        f"{ranking.better} is better; evaluation seed {evaluation.seed}, "
        f"`{evaluation.digest[:16]}`."
    )
    lines = [*_floor_line(board), *(_line(row) for row in board.rows)]
    commands = "\n".join(
        f"# {row.rank} {row.label}: {row.file}\n{row.record.command}" for row in board.rows
    )
    return (
        f"{title}\n\n{about}\n\n{_table(lines, tuple(_COLUMNS.values()))}\n\n"
        f"<details><summary>Commands</summary>\n\n```bash\n{commands}\n```\n\n</details>"
    )


def _floor_line(board: Board) -> Iterable[dict[str, str]]:
    floor, scale = board.floor, board.ranking.scale
    if floor is not None:
        yield dict.fromkeys(_COLUMNS, "") | {
            "model": floor.label,
            "median": formats.number(floor.statistics.median, scale),
            "mean": formats.number(floor.statistics.mean, scale),
            "95% interval of the mean": formats.interval(
                floor.statistics.low, floor.statistics.high, scale
            ),
            "digits": formats.digits(floor.digits),
        }


def _line(row: Row) -> dict[str, str]:
    statistics, scale = row.statistics, row.record.ranking.scale
    cells = (
        str(row.rank),
        row.label,
        formats.origin(row),
        formats.number(statistics.median, scale),
        formats.number(statistics.mean, scale),
        formats.interval(statistics.low, statistics.high, scale),
        formats.digits(row.digits),
        formats.difference(row.above, scale),
        str(row.seeds or ""),
        formats.spread(row),
        f"{row.parameters:,}",
        formats.budget(row.steps, row.batch),
        formats.seconds(row.seconds),
        formats.device(row.device, row.threads),
    )
    return dict(zip(_COLUMNS, cells, strict=True))


def precision_page(boards: Sequence[Board]) -> str:
    """precision.md: ranked by digits beside the floor, with the precision profile."""
    parts = [
        f"{GENERATED}\n\n# Precision",
        "Rows with at most half a digit less than the floor are *at the floor* and share the first "
        "rank: what is beyond it is rounding. The others are ranked by their digits. The columns 0 "
        "to 16 are the precision profile, the percentage of prompts (and seeds) that are solved to "
        "at least so many digits, which a mean or a median hides. [All tasks](README.md) · "
        f"{LEGEND}",
    ]
    parts += [_precision_section(board) for board in boards if has_digits(board.ranking)]
    return "\n\n".join(parts) + "\n"


def _precision_section(board: Board) -> str:
    title = f"## {board.task} · {board.dtype} · {_evaluation(board.evaluation)}"
    floor = formats.digits(board.floor.digits if board.floor else None) or "none"
    lines = [
        {
            "rank": str(row.precision_rank),
            "model": f"{MARKS[row.origin]} {row.label}",
            "digits": formats.digits(row.digits) or formats.NOT_FINITE,
            "beside the floor": "at the floor"
            if row.at_floor
            else formats.missing_digits(row.missing_digits),
            **{str(k): _percent(v) for k, v in zip(PROFILE, row.profile or (), strict=True)},
        }
        # Rows at the floor first; the sort keeps the board's order otherwise.
        for row in sorted(board.rows, key=lambda row: not row.at_floor)
    ]
    aligned = ("right", "left", "right", "right", *["right"] * len(PROFILE))
    return (
        f"{title}\n\nFloor: {floor} digits of the {board.ranking.statistic} "
        f"{board.ranking.metric}.\n\n{_table(lines, aligned)}"
    )


def _percent(fraction: float) -> str:
    """Whole percent; never 0 for a few prompts, and never 100 for nearly all."""
    if 0 < fraction < 0.005:
        return "<1"
    return ">99" if 0.995 <= fraction < 1 else f"{100 * fraction:.0f}"


def _table(lines: list[dict[str, str]], aligned: tuple[str, ...] = ()) -> str:
    escaped = [{key: value.replace("|", "\\|") for key, value in line.items()} for line in lines]
    return tabulate(
        escaped, headers="keys", tablefmt="github", disable_numparse=True, colalign=aligned or None
    )
