"""The Markdown pages of `leaderboard build`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from ..api.record import Record
from ..runs.store import RecordStore
from .formats import (
    LEGEND,
    MARKS,
    arguments,
    budget,
    device,
    difference_text,
    digits_text,
    interval,
    number,
    origin,
    seconds,
)
from .overview import Overview, overviews
from .precision import (
    PROFILE,
    by_precision,
    digits,
    floor_digits,
    has_digits,
    is_at_floor,
    missing_digits,
    profile,
)
from .tables import Board, Standing

#: The first line of every page, by which `build` knows its own.
MADE = "<!-- made by `iclbench leaderboard build` from the records; do not edit -->"

_COLUMNS = (
    ("rank", "right"),
    ("model", "left"),
    ("origin", "left"),
    ("median", "right"),
    ("mean", "right"),
    ("95% interval of the mean", "right"),
    ("digits", "right"),
    ("against the row above", "right"),
    ("seeds", "right"),
    ("over seeds", "right"),
    ("parameters", "right"),
    ("budget", "right"),
    ("time", "right"),
    ("device", "left"),
)


def overview_page(boards: Sequence[Board]) -> str:
    """README.md: task × model in each dtype, and where all else is."""
    records = [record for board in boards for record in board.records]
    tasks = sorted({record.spec.task for record in records})
    parts = [
        f"{MADE}\n\n# Leaderboards",
        f"{len(records)} records of {len(tasks)} tasks. A cell is a model's best row: the "
        "digits of its error, −log10, or what the task ranks by where that is no error. **Bold** "
        "is at the floor, the task's own reference in the same dtype, within half a digit. "
        f"{LEGEND}.",
        "Every row can be measured again: `iclbench verify leaderboards/records`. All rows are in "
        "[rows.csv](rows.csv) and [rows.parquet](rows.parquet); errors beside the floor, and how "
        "many prompts are solved to how many digits, in [precision.md](precision.md).",
        "Tasks: " + ", ".join(f"[{task}](tasks/{task}.md)" for task in tasks) + ".",
    ]
    parts += [_overview(found) for found in overviews(boards)]
    return "\n\n".join(parts) + "\n"


def _overview(found: Overview) -> str:
    tasks = [board.records[0].spec.task for board in found.boards]
    floor = {"model": "floor"} | {
        task: _shown(floor_digits(board.records[0]), _floor(board.records[0]), board.records[0])
        for task, board in zip(tasks, found.boards, strict=True)
    }
    rows = [floor]
    for model in found.models:
        row = {"model": model}
        for task in tasks:
            standing = found.best.get((task, model))
            row[task] = "" if standing is None else _cell(standing.record)
        rows.append(row)
    about = [
        f"- `{task}` v{board.records[0].spec.task_version}: {_evaluation(board.records[0])}, "
        f"{board.records[0].ranking.statistic} {board.records[0].ranking.metric}"
        for task, board in zip(tasks, found.boards, strict=True)
    ]
    return f"## {found.dtype}\n\n{_table(rows)}\n\n" + "\n".join(about)


def _cell(record: Record) -> str:
    found = record.metrics[record.ranking.metric]
    value = _shown(digits(record), getattr(found, record.ranking.statistic), record)
    value = f"**{value}**" if is_at_floor(record) else value
    return f"{value} {MARKS[record.spec.origin]}"


def _shown(found: float | None, value: float | None, record: Record) -> str:
    if has_digits(record):
        return digits_text(found) or ("" if value is None and found is None else "not finite")
    return number(value, record.ranking.scale) if value is not None else ""


def _floor(record: Record) -> float | None:
    found = record.floor.get(record.ranking.metric)
    return getattr(found, record.ranking.statistic) if found else None


def _evaluation(record: Record) -> str:
    args = arguments(record.evaluation.task_args)
    return (f"{args}; " if args else "") + f"{record.evaluation.prompts:,} prompts"


def task_page(task: str, boards: Sequence[Board], store: RecordStore) -> str:
    """One task: a ranked table for each dtype, configuration and evaluation set."""
    parts = [
        f"{MADE}\n\n# {task}",
        f"[All tasks](../README.md) · {LEGEND}",
        "*against the row above* is the mean paired difference on the same prompts with its 95% "
        "interval, in digits gained where the task ranks by an error; `*` marks one that excludes "
        "0. Ranks with `=` can't be told from the first of that rank. *budget* is steps × prompts "
        "a step; *over seeds* the lowest and highest seed.",
    ]
    parts += [_section(board, store) for board in boards]
    return "\n\n".join(parts) + "\n"


def _section(board: Board, store: RecordStore) -> str:
    record = board.records[0]
    ranking = record.ranking
    title = f"## {record.spec.dtype} · {_evaluation(record)}"
    about = (
        f"Version {record.spec.task_version}, ranked by the {ranking.statistic} {ranking.metric}, "
        f"{ranking.better} is better; evaluation seed {record.evaluation.seed}, "
        f"`{record.evaluation.digest[:16]}`."
    )
    rows = [*_floor_row(board), *(_row(s, board) for s in board.standings)]
    table = _table(rows, [align for _, align in _COLUMNS])
    commands = "\n".join(
        f"# {s.rank} {s.label}: {store.path(s.record.spec).relative_to(store.folder).as_posix()}\n"
        f"{s.record.command}"
        for s in board.standings
    )
    return (
        f"{title}\n\n{about}\n\n{table}\n\n<details><summary>Commands</summary>\n\n"
        f"```bash\n{commands}\n```\n\n</details>"
    )


def _floor_row(board: Board) -> Iterable[dict[str, str]]:
    record = board.records[0]
    found, scale = record.floor.get(record.ranking.metric), record.ranking.scale
    if found is not None:
        yield dict.fromkeys([name for name, _ in _COLUMNS], "") | {
            "model": record.floor_name,
            "median": number(found.median, scale),
            "mean": number(found.mean, scale),
            "95% interval of the mean": interval(found.low, found.high, scale),
            "digits": digits_text(floor_digits(record)),
        }


def _row(standing: Standing, board: Board) -> dict[str, str]:
    record = standing.record
    found, scale = record.metrics[record.ranking.metric], record.ranking.scale
    # The board's own words for what no page says otherwise.
    spread = board.rows.loc[board.rows["rank"] != ""].iloc[board.standings.index(standing)]
    values = (
        standing.rank,
        standing.label,
        origin(record),
        number(found.median, scale),
        number(found.mean, scale),
        interval(found.low, found.high, scale),
        digits_text(digits(record)),
        difference_text(standing.above, scale),
        str(len(record.spec.seeds)) if record.spec.seeds else "",
        spread["spread"],
        f"{record.parameters:,}",
        budget(record),
        seconds(record),
        device(record),
    )
    return {name: value for (name, _), value in zip(_COLUMNS, values, strict=True)}


def precision_page(boards: Sequence[Board]) -> str:
    """precision.md: ranked by digits beside the floor, with the precision profile."""
    parts = [
        f"{MADE}\n\n# Precision",
        "Rows with at most half a digit less than the floor are *at the floor* and share the first "
        "rank: what is beyond it is rounding. The others are ranked by their digits. The columns 0 "
        "to 16 are the precision profile, the percentage of prompts (and seeds) that are solved to "
        "at least so many digits, which a mean or a median hides. [All tasks](README.md) · "
        f"{LEGEND}",
    ]
    parts += [_precision(board) for board in boards if has_digits(board.records[0])]
    return "\n\n".join(parts) + "\n"


def _precision(board: Board) -> str:
    record = board.records[0]
    title = f"## {record.spec.task} · {record.spec.dtype} · {_evaluation(record)}"
    floor = digits_text(floor_digits(record)) or "none"
    rows = []
    for rank, standing in by_precision(board):
        missing = missing_digits(standing.record)
        where = "at the floor" if is_at_floor(standing.record) else _minus(missing)
        solved = profile(standing.values)
        rows.append(
            {
                "rank": rank,
                "model": f"{MARKS[standing.record.spec.origin]} {standing.label}",
                "digits": digits_text(digits(standing.record)) or "not finite",
                "beside the floor": where,
                **{str(k): _percent(v) for k, v in zip(PROFILE, solved, strict=True)},
            }
        )
    aligned = ["right", "left", "right", "right", *["right"] * len(PROFILE)]
    return (
        f"{title}\n\nFloor: {floor} digits of the {record.ranking.statistic} "
        f"{record.ranking.metric}.\n\n{_table(rows, aligned)}"
    )


def _minus(missing: float | None) -> str:
    return "" if missing is None else f"−{missing:.1f}"


def _percent(fraction: float) -> str:
    """Whole per cent; a few prompts are not none, and nearly all are not all."""
    if 0 < fraction < 0.005:
        return "<1"
    return ">99" if 0.995 <= fraction < 1 else f"{100 * fraction:.0f}"


def _table(rows: list[dict[str, str]], aligned: Sequence[str] = ()) -> str:
    shown = [{key: value.replace("|", "\\|") for key, value in row.items()} for row in rows]
    return tabulate(
        shown, headers="keys", tablefmt="github", disable_numparse=True,
        colalign=tuple(aligned) or None,
    )  # fmt: skip
