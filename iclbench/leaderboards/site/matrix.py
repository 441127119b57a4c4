"""The table of index.html: models and tasks, for one origin, dtype and track at a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...console import capitalized
from .. import formats
from ..board import Board
from ..descriptions import Descriptions
from ..level import level_of
from ..overview import standing_for_titles
from ..representative import is_one_training, representing
from ..row import Row
from ..scale import board_scale
from .figure import View
from .home import families
from .minus import with_minus
from .settings import best_by_model

#: More columns than this have their names upright.
MOST_COLUMNS = 18
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
    tracks = sorted({row.track_name for row in rows if row.is_trained})
    choices = [
        Choice(origin, dtype, track)
        for origin in origins
        for dtype in dtypes
        for track in ["", *(tracks if origin == "trained" and len(tracks) > 1 else [])]
    ]
    drawn = [table for choice in choices if (table := _table(choice, boards, about))]
    return {"origins": origins, "dtypes": dtypes, "tracks": tracks if len(tracks) > 1 else [],
            "tables": drawn, "has_one_seed": any(map(_has_one_seed, drawn))}  # fmt: skip


def _fits(row: Row, choice: Choice) -> bool:
    return row.origin == choice.origin and choice.track in {"", row.track_name}


def _table(choice: Choice, boards: Sequence[Board], about: Descriptions) -> View | None:
    columns = list(_columns(choice, boards, about))
    if not columns:
        return None
    models: dict[str, list[float]] = {}
    for column in columns:
        for model, cell in column["cells"].items():
            models.setdefault(model, []).append(cell["percent"] or 0)
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
             "cells": [column["cells"].get(model) for column in columns]}
            for model in ordered
        ],
    }  # fmt: skip


def _columns(choice: Choice, boards: Sequence[Board], about: Descriptions) -> Iterator[View]:
    """A column for each title with fitting rows."""
    for group, members in families(boards, about).items():
        of_dtype = [board for board in members if board.dtype == choice.dtype]
        rows_of = [[row for row in board.rows if _fits(row, choice)] for board in of_dtype]
        chosen = standing_for_titles(zip(of_dtype, rows_of, strict=True))
        for title in sorted(chosen):
            board, rows = chosen[title]
            is_any = choice.origin == "trained" and not choice.track
            usual = board.tracks[0] if is_any else None
            if usual is not None:
                rows = _of_track(representing(rows), usual)
            column = column_of(group, board, rows, about, usual)
            if len({b.title for b in members if b.task == board.task}) > 1:
                # What tells the boards of a task apart follows its name in their titles.
                named = title.partition(": ")[2] or title
                column["title"] = capitalized(named)
            yield column


def _has_one_seed(table: View) -> bool:
    cells = [cell for column in table["columns"] for cell in column["cells"].values()]
    return any(formats.ONE_SEED in cell["bounds"] for cell in cells)


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
            "about": f"{row.label}: {ranking.statistic} {formats.score(row.score, ranking)}"
            + (f", {row.chance}" if row.chance else ""),
            "percent": None if share is None else round(FULL * share),
            "at_floor": row.at_floor,
            "bounds": formats.ONE_SEED * is_one_training(row.record)
            + formats.RANGE * (row.bounds.kind == "range over seeds"),
        }
    best, chance = (
        "" if end is None else written(end, decimals) for end in (scale.reference, scale.chance)
    )
    return {
        "group": group,
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
    # Adding 0 makes a rounded −0 positive.
    places = 0 if abs(value) >= 1000 else decimals
    return with_minus(f"{round(value, places) + 0.0:,.{places}f}")
