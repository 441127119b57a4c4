"""Row: one line of a board, made once; the tables, pages, exports and the site only read it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..api.digits import digits
from ..api.record import Ranking, Record
from ..api.statistics import Statistics
from ..runs.statistics import GRADE, by_prompt
from ..runs.store import read_values
from .labels import labels_of
from .ranking import Difference, Rank, at_floor, best_first, difference, ranked_values, ranks

#: The digits k at which a precision profile is taken.
PROFILE = range(17)


@dataclass(frozen=True)
class Floor:
    """The row of the task's floor, which is not ranked."""

    label: str
    statistics: Statistics
    score: float | None
    digits: float | None


@dataclass(frozen=True)
class Row:
    """Every fact that a line of a board shows, in the units of the ranked metric.

    None stands for a number that is not finite, or that the record does not have.
    """

    record: Record
    #: TASK/MODEL-ID.json, below the folder of records.
    file: str
    label: str

    #: The ranked metric of every seed and prompt, (seeds, prompts); a second axis is averaged.
    values: np.ndarray
    #: What ranks, (seeds, prompts): digits, at most those that count, or the metric itself.
    ranked: np.ndarray
    #: None for a single trained seed, which is not ranked.
    rank: Rank | None
    #: The paired difference to the row above, of `ranked`; None for the first row.
    above: Difference | None

    statistics: Statistics
    #: The record's statistic: overall, for each seed, and of the floor.
    score: float | None
    seed_scores: tuple[float | None, ...]
    floor_score: float | None

    #: Mean digits over prompts, and the floor's; None where the task does not rank by digits.
    digits: float | None
    floor_digits: float | None
    #: How many digits fewer than the floor's; 0 for as many or more.
    missing_digits: float | None
    at_floor: bool
    #: The fraction of values solved to at least k digits, k in PROFILE; None without digits.
    profile: tuple[float, ...] | None

    origin: str
    #: The name of the construction, if the weights are constructed.
    construction: str | None
    #: The checkpoint that training started from.
    init: str | None
    #: How many seeds were trained, and how many of them diverged.
    seeds: int
    diverged: int
    parameters: int
    #: The training budget: steps, and prompts per step.
    steps: int | None
    batch: int | None
    training_seconds: float | None
    evaluation_seconds: float
    device: str
    threads: int

    @property
    def seconds(self) -> float:
        """Seconds of training, or of the evaluation if nothing was trained."""
        return self.evaluation_seconds if self.training_seconds is None else self.training_seconds


def has_digits(ranking: Ranking) -> bool:
    """Whether the task ranks by the digits of an error."""
    return ranking.scale == "log" and ranking.better == "lower"


def profile(digits: np.ndarray) -> tuple[float, ...]:
    """The fraction of values with at least k digits, for each k in PROFILE."""
    return tuple(float((digits >= k).mean()) for k in PROFILE)


def floor_of(record: Record) -> Floor | None:
    """The floor of a record's ranked metric, or None if the task has none."""
    statistics = record.floor.get(record.ranking.metric)
    if statistics is None:
        return None
    score = record.ranking.score(statistics)
    return Floor(record.main.floor.name, statistics, score, _digits(statistics, record.ranking))


def _digits(statistics: Statistics, ranking: Ranking) -> float | None:
    """The mean digits that rank, or None where digits do not rank."""
    return statistics.digits.mean if statistics.digits and has_digits(ranking) else None


def rows_of(paths: Mapping[str, Path], records: Sequence[Record]) -> tuple[Row, ...]:
    """The rows of comparable records, best first; `paths` maps a record's id to its file.

    Raises RecordError if the values of a record's prompts are missing or were changed.
    """
    ranking = records[0].ranking
    measured = [_measured(paths[record.id], record) for record in records]
    if ranking.metric.startswith(GRADE):
        measured = _graded_for_all(measured)
    names = [(record.spec.model, record.id) for record in records]
    better = "higher" if measured[0].digits is not None else ranking.better
    order = best_first([m.ranked for m in measured], names, better)
    records, measured = [records[i] for i in order], [measured[i] for i in order]
    ranked = [i for i, record in enumerate(records) if _is_ranked(record)]
    by_row = dict(zip(ranked, ranks([measured[i].ranked for i in ranked], better), strict=True))
    above = [None, *(difference(b.ranked, a.ranked) for a, b in itertools.pairwise(measured))]
    return tuple(
        _row(record, paths[record.id], _Standing(label, measured[i], by_row.get(i), above[i]))
        for i, (record, label) in enumerate(zip(records, labels_of(records), strict=True))
    )


def _is_ranked(record: Record) -> bool:
    """Whether the row's seeds, if it was trained, say how much seeds differ."""
    return record.spec.origin != "trained" or len(record.spec.seeds) > 1


class _Measured(NamedTuple):
    """The values of a record's prompts: (seeds, prompts), those of the floor (prompts,)."""

    values: np.ndarray
    ranked: np.ndarray
    #: The digits of the values and of the floor's, where digits rank and the floor is known.
    digits: np.ndarray | None
    floor_digits: np.ndarray | None


def _measured(path: Path, record: Record) -> _Measured:
    name = record.ranking.metric
    references, floor_references = record.main.values, record.main.floor.values
    arrays = read_values(path, {name: references[name]})
    values, kind = by_prompt(arrays[name]), record.metrics[name].digits
    if kind is None or not has_digits(record.ranking):
        return _Measured(values, values, None, None)
    reached = digits(values, kind.error)
    if name not in floor_references:
        return _Measured(values, reached, reached, None)
    floor = read_values(path, {name: floor_references[name]})[name]
    attainable = digits(by_prompt(floor[None])[0], kind.error)
    return _Measured(values, ranked_values(reached, attainable), reached, attainable)


class _Standing(NamedTuple):
    """What a row has from its board."""

    label: str
    measured: _Measured
    rank: Rank | None
    above: Difference | None


def _row(record: Record, path: Path, standing: _Standing) -> Row:
    spec, ranking, training = record.spec, record.ranking, record.training
    floor, measured = floor_of(record), standing.measured
    statistics = record.metrics[ranking.metric]
    reached, attainable = _digits(statistics, ranking), floor.digits if floor else None
    return Row(
        record=record,
        file=f"{spec.task}/{path.name}",
        label=standing.label,
        values=measured.values,
        ranked=measured.ranked,
        rank=standing.rank,
        above=standing.above,
        statistics=statistics,
        score=ranking.score(statistics),
        seed_scores=tuple(ranking.score(seed[ranking.metric]) for seed in record.main.seeds),
        floor_score=floor.score if floor else None,
        digits=reached,
        floor_digits=attainable,
        missing_digits=None
        if reached is None or attainable is None
        else max(0.0, attainable - reached),
        at_floor=measured.digits is not None
        and measured.floor_digits is not None
        and at_floor(measured.digits, measured.floor_digits),
        profile=None if measured.digits is None else profile(measured.digits),
        origin=spec.origin,
        construction=spec.weights if spec.origin == "constructed" else None,
        init=spec.init,
        seeds=len(spec.seeds),
        diverged=sum(seed.diverged_at is not None for seed in record.seeds),
        parameters=record.parameters,
        steps=training.steps if training else None,
        batch=training.batch if training else None,
        training_seconds=training.seconds if training else None,
        evaluation_seconds=record.main.seconds,
        device=record.environment.device,
        threads=record.environment.threads,
    )


def _graded_for_all(rows: list[_Measured]) -> list[_Measured]:
    """The values of the prompts that were graded for every record, or all if there are none."""
    graded = ~np.isnan(np.concatenate([row.values for row in rows])).any(axis=0)
    if not graded.any():
        return rows
    return [_Measured(row.values[:, graded], row.ranked[:, graded], None, None) for row in rows]
