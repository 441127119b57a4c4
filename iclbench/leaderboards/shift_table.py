"""Shifts by models: the score of each row of a board under each shift that a record holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..api.ranking import Ranking
from ..api.record import MAIN, Record
from ..api.results import Evaluation
from ..api.statistics import Statistics
from .board import Board
from .bounds import trusted
from .row import Row

#: The first line of a matrix: the prompts that models train on.
TRAINED = "as in training"


@dataclass(frozen=True)
class Line:
    """A line of the matrix. `score` is what its cells are: `digits`, or the mean of a metric.

    `cells` are in the order of `shifted_rows`: a score, None for a record without the shift, or the
    reason why it does not apply.
    """

    shift: str
    #: The shift's name; `main` for the prompts of training.
    name: str
    score: str
    floor: float | None
    #: What the floor is: one that is none is a target, which a model may beat.
    floor_name: str
    cells: tuple[float | str | None, ...]
    #: Each score's 95% interval; None where there is none.
    intervals: tuple[tuple[float, float] | None, ...]
    #: Whether half of the errors or more are lost: they count as the limit of
    #: `iclbench.runs.limits`, so the score is that limit, and is no measurement.
    lost: tuple[bool, ...]

    @property
    def bound(self) -> str:
        """The sign before a score that is lost: digits are at most, errors at least so many."""
        return "≤" if self.score == "digits" else "≥"


def lost_legend() -> str:
    """What the signs ≤ and ≥ before a score mean."""
    # Imported here: it brings torch, which boards without shifts do without.
    from ..runs.limits import LOST

    return (
        "≤ and ≥: half of the answers or more are lost. Their errors count as "
        f"{LOST:,.0f} root mean squares of the targets, so that the score is only a bound."
    )


def shifted_rows(board: Board) -> list[Row]:
    """The rows of a board that were evaluated under any shift, or can't be."""
    return [
        row for row in board.rows if len(row.record.evaluations) > 1 or row.record.not_applicable
    ]


def shift_lines(board: Board) -> list[Line]:
    """The lines of a board: training's prompts first, then every shift; empty without shifts.

    Where a shift scales the targets, a second line has the digits relative to their root mean
    square.
    """
    records = [row.record for row in shifted_rows(board)]
    names = sorted({name for r in records for name in (*r.evaluations, *r.not_applicable)} - {MAIN})
    if not names:
        return []
    return [
        _line(records, MAIN, relative=False),
        *(_line(records, name, relative=relative)
          for name in names for relative in _kinds(records, name)),
    ]  # fmt: skip


def _kinds(records: Sequence[Record], name: str) -> tuple[bool, ...]:
    """Whether the lines of a shift are relative to the size of the targets."""
    sizes = {r.evaluations[name].target_size for r in records if name in r.evaluations}
    return (False,) if sizes <= {None} else (False, True)


def _line(records: Sequence[Record], name: str, *, relative: bool) -> Line:
    ranking = records[0].ranking
    evaluated = [record.evaluations[name] for record in records if name in record.evaluations]
    # A shift may bring noise, which digits are not meant for; the kind of the floor tells.
    kinds = {e.floor.kind for e in evaluated}
    in_digits = ranking.has_digits and kinds <= {records[0].main.floor.kind}
    score = "digits" if in_digits else f"mean {ranking.metric}"
    floors = (_score(e, ranking, in_digits, relative, floor=True) for e in evaluated)
    cells = tuple(
        _score(record.evaluations[name], ranking, in_digits, relative)
        if name in record.evaluations
        else record.not_applicable.get(name)
        for record in records
    )
    lost = tuple(
        name in record.evaluations
        and not record.chance
        and _is_lost(record.evaluations[name], ranking)
        for record in records
    )
    intervals = tuple(
        _interval(record.evaluations[name], ranking, in_digits, relative)
        if name in record.evaluations and not is_lost
        else None
        for record, is_lost in zip(records, lost, strict=True)
    )
    shift = TRAINED if name == MAIN else f"{name}, relative" if relative else name
    floor_name = "target" if kinds == {"none"} else "floor"
    return Line(shift, name, score, next(floors, None), floor_name, cells, intervals, lost)


def _is_lost(evaluation: Evaluation, ranking: Ranking) -> bool:
    """Whether the median error is the largest one, as it is where half of the answers are lost."""
    statistics = evaluation.metrics.get(ranking.metric)
    if statistics is None or statistics.digits is None or statistics.n < 2:
        return False
    if statistics.median is None or statistics.median != statistics.max:
        return False
    # Correct rounding is a limit as well, which all answers may reach.
    floor = evaluation.floor.metrics.get(ranking.metric)
    return statistics.median > ((floor and floor.median) or 0.0)


def _score(
    evaluation: Evaluation,
    ranking: Ranking,
    in_digits: bool,
    relative: bool,
    *,
    floor: bool = False,
) -> float | None:
    metrics = evaluation.floor.metrics if floor else evaluation.metrics
    statistics = metrics.get(ranking.metric)
    if statistics is None:
        return None
    size = evaluation.target_size if relative else None
    if in_digits:
        mean = statistics.digits.mean if statistics.digits else None
        return mean if mean is None or not size else mean + math.log10(size)
    return _divided(statistics.mean, statistics, size)


def _divided(value: float | None, statistics: Statistics, size: float | None) -> float | None:
    """A value of a metric relative to the size of the targets, if there is one."""
    if value is None or not size:
        return value
    is_squared = statistics.digits is not None and statistics.digits.error == "squared"
    # Divided twice, since a square may be too small.
    return value / size / (size if is_squared else 1.0)


def _interval(
    evaluation: Evaluation, ranking: Ranking, in_digits: bool, relative: bool
) -> tuple[float, float] | None:
    """The 95% interval of a score; None for bounds of another kind."""
    statistics = evaluation.metrics.get(ranking.metric)
    measured = statistics.digits if statistics is not None and in_digits else statistics
    if statistics is None or measured is None:
        return None
    low, high = trusted(measured)
    if low is None or high is None:
        return None
    size = evaluation.target_size if relative else None
    if in_digits:
        # Digits of relative errors are moved by a constant.
        moved = math.log10(size) if size else 0.0
        return low + moved, high + moved
    low, high = (_divided(bound, statistics, size) for bound in (low, high))
    return None if low is None or high is None else (low, high)
