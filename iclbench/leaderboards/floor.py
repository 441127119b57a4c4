"""The floor of a board: what it is called, and its score."""

from __future__ import annotations

from dataclasses import dataclass

from ..api.floor import FLOOR_NAMES
from ..api.record import Record
from ..api.statistics import Statistics
from .row import worst

FLOOR_LABELS = {"exact": "attainable", "bayes": "Bayes", "bound": "bound", "none": "target"}


@dataclass(frozen=True)
class Floor:
    """The row of the task's floor, which is not ranked."""

    label: str
    kind: str
    statistics: Statistics
    #: The statistic that ranks: its mean digits, or the mean.
    score: float | None
    worst: float | None


def floor_of(record: Record) -> Floor | None:
    """The floor of a record's ranked metric, or None if the task has none."""
    ranking, floor = record.ranking, record.main.floor
    statistics = floor.metrics.get(ranking.metric)
    if statistics is None:
        return None
    score, least = ranking.score(statistics), worst(statistics, ranking)
    return Floor(floor_label(record), floor.kind, statistics, score, least)


def floor_label(record: Record) -> str:
    """The floor's name by its kind, with the task's own name if it has one."""
    floor = record.main.floor
    label = FLOOR_LABELS.get(floor.kind, floor.name)
    is_default = floor.name in {*FLOOR_NAMES.values(), label}
    return label if is_default else f"{label}: {floor.name}"
