"""Board: the comparable records of one task as rows, of which the trained ones are ranked."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..api.errors import RecordError
from ..api.ranking import Ranking
from ..api.record import Record
from ..api.results import Evaluation
from ..api.spec import canonical_json
from ..console import counted
from ..files import path_of
from ..runs.code import installed_code
from ..runs.statistics import GRADE
from ..runs.store import RecordStore, folder_of_records, read_record
from . import formats
from .arguments import argument_pairs
from .export import export_table
from .floor import Floor, floor_of
from .grouping import grouped
from .groups import by_training, rows_of
from .labels import grader_name
from .ranking import Rank
from .row import Row

if TYPE_CHECKING:
    import pandas as pd

#: How often a row holds its values: as measured, in digits, and as they rank.
ROW_COPIES = 3
#: Bytes of memory that every machine has.
SURELY_THERE = 2**30
#: What a notebook shows of a board, of the columns of its frame.
_SHOWN = {
    "rank": "rank",
    "row": "model",
    "origin": "origin",
    "track": "track",
    "seeds": "seeds",
    "score": "score",
    "score_low": "low",
    "score_high": "high",
    "q99": "99%",
    "median": "median",
    "parameters": "parameters",
}


def tracks_of(records: Iterable[Record]) -> list[str]:
    """The tracks of trained records: those of most models first, of equal ones the longest."""
    models: dict[str, set[str]] = {}
    for record in records:
        if record.spec.origin == "trained":
            models.setdefault(record.track or "", set()).add(record.spec.model)
    return sorted(models, key=lambda track: (not track, -len(models[track]), by_training(track)))


@dataclass(frozen=True)
class Board:
    """One or more rows of a task, configuration, dtype and evaluation set.

    The trained rows of each track come first, best first, and then all others, best first.
    """

    rows: tuple[Row, ...]
    #: The floor that the rows share, or None if the task has none.
    floor: Floor | None

    @property
    def records(self) -> tuple[Record, ...]:
        """The record of each row."""
        return tuple(row.record for row in self.rows)

    @property
    def first(self) -> Record:
        """Any of the records: what comparable ones share is asked often, on boards of thousands."""
        return self.rows[0].record

    @property
    def task(self) -> str:
        """The task's name."""
        return self.first.spec.task

    @property
    def task_version(self) -> int:
        """The task's version."""
        return self.first.spec.task_version

    @property
    def dtype(self) -> str:
        """What the models compute in: float32 or float64."""
        return self.first.spec.dtype

    @property
    def ranking(self) -> Ranking:
        """The metric and the statistic that rank."""
        return self.first.ranking

    @property
    def evaluation(self) -> Evaluation:
        """The prompts of the board; `seconds` is that of the first row."""
        return self.first.main

    @property
    def title(self) -> str:
        """What the task calls itself with these arguments."""
        return self.evaluation.title

    @cached_property
    def has_tracks(self) -> bool:
        """Whether any row belongs to a class of training budgets."""
        return any(row.track for row in self.rows)

    @cached_property
    def tracks(self) -> list[str]:
        """The tracks of the trained rows, see `tracks_of`."""
        return tracks_of(self.records)

    @property
    def undecided(self) -> list[str]:
        """The tracks of two or more ranked rows of which no two differ significantly."""
        ranks: dict[str, list[Rank]] = {}
        for row in self.rows:
            if row.rank is not None:
                ranks.setdefault(row.track, []).append(row.rank)
        return [
            track
            for track in self.tracks
            if len(group := ranks.get(track, [])) > 1 and set(group) == {(1, len(group))}
        ]

    @property
    def has_digits(self) -> bool:
        """Whether the board ranks by the digits of an error."""
        return self.ranking.has_digits

    @property
    def setting(self) -> str:
        """The task with its version and arguments, and the dtype."""
        args = argument_pairs(self.evaluation.task_args)
        return f"{self.title} v{self.task_version}{f' ({args})' if args else ''} · {self.dtype}"

    @property
    def description(self) -> str:
        """The setting, and what ranks."""
        text = (
            f"{self.setting} · "
            f"{self.ranking.metric} on {counted(self.evaluation.prompts, 'prompt')}, ranked by its "
            f"{self.ranking.statistic}"
        )
        if _grading(self.first):
            text += f", graded by {grader_name(self.first)}"
        return text

    def __repr__(self) -> str:
        """The board and the number of its rows, on a line."""
        return f"<Board of {counted(len(self.rows), 'row')}: {self.description}>"

    def frame(self) -> pd.DataFrame:
        """One line per row, with the columns of the published `rows.csv`."""
        return export_table(self.rows)

    def _repr_html_(self) -> str:
        """The board as a notebook shows it."""
        table = self.frame()
        table.insert(0, "rank", [formats.rank(row) for row in self.rows])
        table = table[list(_SHOWN)].rename(columns=_SHOWN).dropna(axis="columns", how="all")
        body = table.to_html(index=False, na_rep="", float_format="{:.4g}".format, border=0)
        floor = ""
        if self.floor is not None:
            score = formats.score(self.floor.score, self.ranking)
            floor = f"<p>{html.escape(self.floor.label)}: {score}</p>"
        return f"<p><b>{html.escape(self.description)}</b></p>{floor}{body}"


class Boards(list[Board]):
    """Boards, in the order of their tasks; a notebook shows them all."""

    def frame(self) -> pd.DataFrame:
        """The rows of all boards; `title`, `task`, `dtype` and others tell the boards apart."""
        return export_table([row for board in self for row in board.rows])

    def _repr_html_(self) -> str:
        return "\n".join(board._repr_html_() for board in self)


def leaderboard(out: str | Path = "results") -> Boards:
    """The boards of all records in the folder `out`, or in `records` there.

    Raises UsageError where there is no such folder, and RecordError for a damaged record.
    """
    store = RecordStore(folder_of_records(path_of(out)))
    return boards([read_record(path) for path in store.paths()], store)


class Places(Protocol):
    """Knows where records are: a `RecordStore`, or several."""

    def path_of(self, record: Record) -> Path:
        """The record's file."""
        ...


def boards(records: Sequence[Record], store: Places) -> Boards:
    """One board for each set of comparable records of the store.

    Raises RecordError if the values of a record's prompts are missing or were changed, or if all of
    them need more memory than this machine has.
    """
    _require_memory(records)
    paths = {record.id: store.path_of(record) for record in records}
    installed = installed_code()
    rows = [rows_of(paths, group, installed) for group in comparable(records)]
    return Boards(Board(of_board, floor_of(of_board[0].record)) for of_board in rows)


def _require_memory(records: Sequence[Record]) -> None:
    """Raise RecordError for records of which the values can't be held at once.

    Compressed, they may be tiny: a stranger's record could otherwise end the process.
    """
    sizes = {
        record.id: ROW_COPIES * 8 * math.prod(record.main.values[record.ranking.metric].shape or ())
        for record in records
    }
    needed = sum(sizes.values())
    if needed < SURELY_THERE:
        return
    # It brings torch, which most boards do without.
    from ..devices import machine_memory

    memory = machine_memory()
    if needed > memory:
        largest = max(sizes, key=sizes.__getitem__)
        raise RecordError(
            f"the values of {counted(len(sizes), 'record')} need {needed / 1e9:,.0f} GB of memory; "
            f"this machine has {memory / 1e9:,.0f} GB, and {largest} alone needs "
            f"{sizes[largest] / 1e9:,.1f} GB"
        )


def comparable(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each board, in the order of `boards`.

    Of a task's boards, those with rows of a training budget come first.
    """
    groups = grouped(records, lambda record: canonical_json(comparable_facts(record)))

    def standing(key: str) -> tuple[str, bool, str]:
        members = groups[key]
        return members[0].spec.task, not any(record.track for record in members), key

    return [groups[key] for key in sorted(groups, key=standing)]


def comparable_facts(record: Record, *, dtype: bool = True) -> list[Any]:
    """Records for which these are the same are comparable; without `dtype`, except for theirs."""
    spec, evaluation = record.spec, record.main
    facts = [spec.task, spec.task_version, evaluation.task_args]
    facts += [spec.dtype, evaluation.digest] if dtype else [evaluation.digest]
    # These follow from the task, unless a record is forged.
    ranking = record.ranking.model_dump()
    shape = list((evaluation.values[record.ranking.metric].shape or ())[1:])
    return [*facts, ranking, shape, *_grading(record)]


def _grading(record: Record) -> list[Any]:
    """What determines the grades, if records are ranked by them; [] otherwise."""
    return grader_facts(record) if record.ranking.metric.startswith(GRADE) else []


def grader_facts(record: Record) -> list[Any]:
    """What determines a record's grades; [] for one without."""
    if record.grader is None:
        return []
    return [record.grader.name, record.spec.grader_args, record.grader.model, record.grader.prompt]
