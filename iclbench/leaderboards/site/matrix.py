"""The table of index.html: models and tasks, for one origin, dtype and track at a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...console import capitalized, counted
from .. import formats
from ..board import Board
from ..bounds import ONE_SEED, RANGE
from ..descriptions import Descriptions
from ..level import is_lower_better, level_of
from ..overview import boards_of_trained, standing_for_titles
from ..representative import is_one_training, representing
from ..row import OPEN, Row
from ..scale import board_scale
from .figure import View
from .home import families
from .minus import with_minus
from .settings import best_by_model, longest_first
from .support import Support

#: More columns than this have their names upright.
MOST_COLUMNS = 18
#: What an empty cell shows: the model can't do the board, or has no result there.
UNSUPPORTED, NOT_RUN = "–", "·"
#: What the title of a column says of data that stand in for those of a paper.
STAND_IN = "(stand-in)"
#: The color of the floor, in percent of the style sheet's.
FULL = 85


@dataclass(frozen=True)
class Choice:
    """What the switches choose; an empty track stands for any."""

    origin: str
    dtype: str
    track: str


def tables(boards: Sequence[Board], about: Descriptions) -> View:
    """The choices of the switches, and a table for each that has rows; the first is shown."""
    rows = [row for board in boards for row in board.rows]
    origins = sorted({row.origin for row in rows}, key=lambda origin: (origin != "trained", origin))
    dtypes = sorted({board.dtype for board in boards})
    tracks = [track or OPEN for track in longest_first({r.track for r in rows if r.is_trained})]
    support = Support()
    choices = [
        Choice(origin, dtype, track)
        for origin in origins
        for dtype in dtypes
        for track in ["", *(tracks if origin == "trained" and len(tracks) > 1 else [])]
    ]
    drawn = [table for choice in choices if (table := _table(choice, boards, about, support))]
    return {"origins": origins, "dtypes": dtypes, "tracks": tracks if len(tracks) > 1 else [],
            "tables": drawn, "has_one_seed": any(map(_has_one_seed, drawn)),
            "has_stand_in": any(STAND_IN in c["title"] for t in drawn for c in t["columns"]),
            }  # fmt: skip


def _fits(row: Row, choice: Choice) -> bool:
    return row.origin == choice.origin and choice.track in {"", row.track_name}


def _table(
    choice: Choice, boards: Sequence[Board], about: Descriptions, support: Support
) -> View | None:
    columns = list(_columns(choice, boards, about))
    if not columns:
        return None
    models: dict[str, list[float]] = {}
    for column in columns:
        for model, cell in column["cells"].items():
            percent = 0 if cell["no_better_than_chance"] else cell["percent"] or 0
            models.setdefault(model, []).append(percent)
    # The models with results on most tasks come first, then those nearest to the floors.
    ordered = sorted(models, key=lambda m: (-len(models[m]), -sum(models[m]) / len(models[m]), m))
    groups: dict[str, int] = {}
    for column in columns:
        groups[column["group"]] = groups.get(column["group"], 0) + 1
    firsts = {column["group"]: i for i, column in reversed(list(enumerate(columns)))}
    return {
        "origin": choice.origin,
        "dtype": choice.dtype,
        "track": choice.track,
        "groups": list(groups.items()),
        "columns": columns,
        "firsts": set(firsts.values()),
        "is_dense": len(columns) > MOST_COLUMNS,
        "rows": [
            {"name": model, "title": about.model(model).title,
             "cells": [column["cells"].get(model) for column in columns],
             "blanks": [_blank(model, column, choice, support) for column in columns]}
            for model in ordered
        ],
    }  # fmt: skip


def _blank(model: str, column: View, choice: Choice, support: Support) -> tuple[str, str]:
    """What an empty cell shows, and why it is empty."""
    if model in column["cells"]:
        return "", ""
    if reason := support.reason_against(model, column["board"]):
        return UNSUPPORTED, f"not supported: {reason}"
    origin = f"{choice.origin}, {choice.dtype}{choice.track and f', track {choice.track}'}"
    return NOT_RUN, f"no {origin} result on this board"


def _columns(choice: Choice, boards: Sequence[Board], about: Descriptions) -> Iterator[View]:
    """A column for each title with fitting rows."""
    for group, members in families(boards, about).items():
        of_dtype = [board for board in members if board.dtype == choice.dtype]
        rows_of = [[row for row in board.rows if _fits(row, choice)] for board in of_dtype]
        pairs = zip(of_dtype, rows_of, strict=True)
        chosen = standing_for_titles(pairs, boards_of_trained(of_dtype))
        for title in sorted(chosen):
            board, rows = chosen[title]
            is_any = choice.origin == "trained" and not choice.track
            usual = board.tracks[0] if is_any else None
            if usual is not None:
                rows = _of_track(representing(rows), usual)
            column = column_of(group, board, rows, about, usual)
            column["budget"] = _budget(choice, board)
            if len({b.title for b in members if b.task == board.task}) > 1:
                # What tells the boards of a task apart follows its name in their titles.
                named = title.partition(": ")[2] or title
                column["title"] = capitalized(named)
            yield column


def _budget(choice: Choice, board: Board) -> str:
    """The track of most models of a column, or the chosen one; empty if nothing was trained."""
    if choice.origin != "trained":
        return ""
    return choice.track or board.tracks[0] or OPEN


def _has_one_seed(table: View) -> bool:
    cells = [cell for column in table["columns"] for cell in column["cells"].values()]
    return any(ONE_SEED in cell["bounds"] for cell in cells)


def _of_track(rows: Sequence[Row], track: str) -> list[Row]:
    """The rows of a track, and all rows of the models that have none in it.

    A column whose models had different budgets compares these.
    """
    models = {row.record.spec.model for row in rows if row.track == track}
    return [row for row in rows if row.track == track or row.record.spec.model not in models]


def column_of(
    group: str,
    board: Board,
    rows: Sequence[Row],
    about: Descriptions,
    usual: str | None = None,
    *,
    decimals: int | None = None,
) -> View:
    """A board as a column: the best of these rows of each model, and both ends of its scale.

    A cell of another track than the `usual` one names it; with None, no cell names one. Without
    `decimals`, these rows decide how many there are.
    """
    task, scale, ranking = about.task(board.task), board_scale(board), board.ranking
    args = task.settings(board.evaluation.task_args)
    metric = "digits" if scale.in_digits else task.metric(ranking.metric)
    best_rows = best_by_model(rows)
    levels = [level_of(row.record).value for row in best_rows]
    if decimals is None:
        decimals = 1 if scale.in_digits else decimals_of([*levels, scale.reference, scale.chance])
    cells = {}
    for row, level in zip(best_rows, levels, strict=True):
        share = scale.share(row.record)
        cells[row.record.spec.model] = {
            "id": row.record.id,
            "text": formats.NOT_FINITE if level is None else written(level, decimals),
            "track": "" if usual in {None, row.track} else row.track_name,
            "about": f"{row.label}: {ranking.statistic} "
            f"{with_minus(formats.score(row.score, ranking))}, {_facts(row)}",
            "level": level,
            "marks": " ".join(formats.cell_marks(row)),
            "no_better_than_chance": row.chance != "",
            "is_best": _is_best(row) and usual in {None, row.track},
            "percent": None if share is None else round(FULL * share),
            "at_floor": row.at_floor,
            "bounds": ONE_SEED * is_one_training(row.record)
            + RANGE * (row.bounds.kind == "range over seeds"),
        }
    best, chance = (
        "" if end is None else written(end, decimals) for end in (scale.reference, scale.chance)
    )
    return {
        "group": group,
        "board": board,
        "setting": args,
        "first": "up" if is_lower_better(board.first) else "down",
        "task": board.task,
        "title": task.title,
        "about": f"{board.title} v{board.task_version}: {metric}; {args}, "
        f"{board.evaluation.prompts} prompts",
        "metric": metric,
        "best": best,
        "best_name": about.model(scale.reference_name).title or "best row",
        "has_floor": board.floor is not None and board.floor.kind != "none",
        "chance": chance,
        "decimals": decimals,
        "cells": cells,
    }


def _is_best(row: Row) -> bool:
    """Whether no row of its track is significantly better, and chance is significantly worse."""
    return row.rank is not None and row.rank.first == 1 and not row.chance


def _facts(row: Row) -> str:
    """What a reader must know of a cell, in words: its rank, its seeds and its notes."""
    if not row.is_trained:
        return formats.notes(row, stale=False) or row.origin
    rank = f"rank {row.rank}" if row.rank else row.unranked
    notes = formats.notes(row, stale=False)
    return ", ".join(filter(None, [rank, counted(row.seeds, "seed"), formats.origin(row), notes]))


def decimals_of(values: Iterable[float | None]) -> int:
    """The decimals with which a column's values have about three figures: 3 at most.

    Decimals that are 0 in every value are left out.
    """
    known = [v for v in values if v is not None and math.isfinite(v)]
    sizes = [abs(v) for v in known if v != 0]
    if not sizes:
        return 0
    most = min(3, max(0, 2 - math.floor(math.log10(statistics.median(sizes)))))
    return max(len(f"{v:.{most}f}".partition(".")[2].rstrip("0")) for v in known)


def written(value: float, decimals: int) -> str:
    """A value of a column with its decimals; a large one has none."""
    if abs(value) >= 1e5:
        return with_minus(f"{value:.0e}")
    if decimals == 0 and 0 < abs(value) < 5e-4:  # all of the column would be 0
        return with_minus(formats.short(value))
    places = 0 if abs(value) >= 1000 else decimals
    return with_minus(formats.fixed(value, places, ","))
