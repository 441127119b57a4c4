"""The overview of many boards: a line for each, with its best rows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ..api.ranking import Ranking
from ..api.record import Record
from ..console import counted
from ..leaderboards import formats
from ..leaderboards.board import tracks_of
from ..leaderboards.board_names import board_names
from ..leaderboards.bounds import ONE_SEED
from ..leaderboards.floor import floor_of
from ..leaderboards.labels import labels_of
from ..leaderboards.representative import is_one_training, weakness
from ..leaderboards.row import OPEN
from .records import bounds_legend
from .table import Cell, Column, Table

Line = dict[str, Any]


def overview_table(groups: Sequence[Sequence[Record]], credible: Container[str]) -> Table:
    """One line per board: its best trained row beside the best row of other origins and the floor.

    The trained row is of the track with most models: longer training is no better model.

    Boards without a trained row are counted in a note, if others have one.

    `groups` are the records of each board: what is shown follows from their statistics alone. The
    best ones are among those with a `credible` id, which held-out prompts do not contradict; rows
    with several seeds from random weights come first, and one with a single seed has a mark.
    """
    names = board_names([records[0] for records in groups])
    every = [_overview_line(n, r, credible) for n, r in zip(names, groups, strict=True)]
    lines = [line for line in every if line["best trained"]] or every
    columns = (
        Column("board", fit="wrap"),
        Column("rows", right=True, importance=5),
        Column("best trained", fit="shorten"),
        Column("score", right=True),
        Column("unit", importance=1),
        Column("track", importance=3),
        Column("seeds", right=True, importance=2),
        Column("best other", fit="shorten", importance=4),
        Column("other score", right=True, importance=6),
        Column("floor", right=True),
        Column("metric", importance=7),
    )
    marks = "".join(line["score"].text for line in lines)
    hidden = len(every) - len(lines)
    notes = [
        "unit: ↑ higher is better, ↓ lower",
        "best trained: of the track with most models; longer trainings may be better, and others "
        "may not differ significantly (--task shows ranks)",
        "best other: "
        + ", ".join(f"{m} {name}" for name, m in formats.MARKS.items() if name != "trained"),
    ]
    notes += [f"{counted(hidden, 'board')} without trained rows left out (--all)"] if hidden else []
    return Table(columns, lines, notes=(*notes, *bounds_legend(marks)))


def _overview_line(name: str, records: Sequence[Record], credible: Container[str]) -> Line:
    first = records[0]
    ranking = first.ranking
    labelled = list(zip(records, labels_of(records), strict=True))
    track = next(iter(tracks_of(r for r in records if r.id in credible)), "")

    def best(is_trained: bool) -> tuple[str, Cell, int]:
        candidates = [
            (r, label)
            for r, label in labelled
            if is_trained == (r.spec.origin == "trained")
            and r.id in credible
            and (not is_trained or (r.track or "") == track)
        ]
        if not candidates:
            return "", Cell("", None), 0
        record, label = max(
            candidates, key=lambda pair: (-weakness(pair[0]), ranking.goodness(pair[0].score))
        )
        mark = f" {ONE_SEED}" if is_one_training(record) else ""
        origin = "" if is_trained else f"{formats.MARKS[record.spec.origin]} "
        return (
            f"{origin}{label}",
            Cell(formats.score(record.score, ranking) + mark, record.score),
            len(record.seeds),
        )

    trained, score, seeds = best(True)
    other, other_score, _ = best(False)
    floor = floor_of(first)
    floor_score = None if floor is None else floor.score
    return {
        "board": name,
        "rows": len(records),
        "best trained": trained,
        "score": score._replace(style="bold"),
        "track": (track or OPEN) if trained else "",
        "seeds": seeds or "",
        "best other": other,
        "other score": other_score,
        "floor": Cell("" if floor is None else formats.score(floor_score, ranking), floor_score),
        "unit": _unit(ranking),
        "metric": f"{ranking.statistic} of {ranking.metric}",
    }


def _unit(ranking: Ranking) -> str:
    """What ranks, and whether more or less of it is better."""
    name = "digits" if ranking.has_digits else ranking.metric
    return f"{name} {'↑' if ranking.better_score == 'higher' else '↓'}"
