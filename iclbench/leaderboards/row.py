"""Row: one line of a board, made once; the tables, pages, exports and the site only read it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..api.record import Ranking, Record
from ..api.statistics import Statistics
from ..runs.statistics import GRADE
from ..runs.store import read_values
from .labels import labels_of
from .ranking import (
    Difference,
    Rank,
    Resampled,
    best_first,
    difference,
    precision_ranks,
    ranks,
    resample,
)

#: The digits k at which a precision profile is taken.
PROFILE = range(17)
#: A row is at the floor if it has at most this many digits fewer than are attainable.
NEAR_FLOOR = 0.5


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
    resampled: Resampled
    rank: Rank
    #: The paired difference to the row above, of log10 on a log scale; None for the first row.
    above: Difference | None

    statistics: Statistics
    #: The statistic that ranks: overall, for each seed, and of the floor.
    score: float | None
    seed_scores: tuple[float | None, ...]
    floor_score: float | None

    #: Digits of the score and of the floor; None where the task does not rank by an error.
    digits: float | None
    floor_digits: float | None
    #: The most digits that count: the floor's, or those of ε² if the floor has no error.
    attainable_digits: float | None
    #: How many digits fewer than attainable; 0 for as many or more.
    missing_digits: float | None
    at_floor: bool
    precision_rank: Rank
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
    """Whether the task ranks by an error whose digits count."""
    return ranking.scale == "log" and ranking.better == "lower"


def digits(score: float | None, ranking: Ranking) -> float | None:
    """The digits of a score: −log₁₀ of an error, ∞ for 0, None for anything else."""
    if score is None or not has_digits(ranking):
        return None
    return math.inf if score <= 0 else -math.log10(score)


def profile(values: np.ndarray) -> tuple[float, ...]:
    """The fraction of the errors that are at most 10⁻ᵏ, for each k in PROFILE; NaN counts as ∞."""
    errors = np.where(np.isnan(values), np.inf, values)
    return tuple(float((errors <= 10.0**-k).mean()) for k in PROFILE)


def floor_of(record: Record) -> Floor | None:
    """The floor of a record's ranked metric, or None if the task has none."""
    statistics = record.floor.get(record.ranking.metric)
    if statistics is None:
        return None
    score = getattr(statistics, record.ranking.statistic)
    return Floor(record.main.floor.name, statistics, score, digits(score, record.ranking))


def ranked_values(path: Path, record: Record) -> np.ndarray:
    """The values that rank the record in `path`, (seeds, prompts); a second axis is averaged."""
    metric = record.ranking.metric
    values = read_values(path, {metric: record.main.values[metric]})[metric]
    return np.asarray(values.mean(axis=2) if values.ndim == 3 else values)


def rows_of(paths: Mapping[str, Path], records: Sequence[Record]) -> tuple[Row, ...]:
    """The rows of comparable records, best first; `paths` maps a record's id to its file.

    Raises RecordError if the values of a record's prompts are missing or were changed.
    """
    ordered = best_first(records)
    ranking = ordered[0].ranking
    values = [ranked_values(paths[record.id], record) for record in ordered]
    if ranking.metric.startswith(GRADE):
        values = _graded_for_all(values)
    resampled = [resample(v, log=ranking.scale == "log") for v in values]
    board_ranks = ranks(values, resampled, ranking.better)
    above = [None, *(difference(b, a) for a, b in itertools.pairwise(resampled))]
    precision = [_precision(record) for record in ordered]
    by_precision = precision_ranks(board_ranks, [p.at_floor for p in precision])
    labels = labels_of(ordered)
    columns = (labels, values, resampled, board_ranks, above, precision, by_precision)
    standings = [_Standing(*facts) for facts in zip(*columns, strict=True)]
    return tuple(
        _row(record, paths[record.id], standing)
        for record, standing in zip(ordered, standings, strict=True)
    )


class _Precision(NamedTuple):
    """The digits of a record's score, beside those of its floor."""

    digits: float | None
    floor: float | None
    attainable: float | None
    missing: float | None

    @property
    def at_floor(self) -> bool:
        return self.missing is not None and self.missing <= NEAR_FLOOR


class _Standing(NamedTuple):
    """What a row has from its board."""

    label: str
    values: np.ndarray
    resampled: Resampled
    rank: Rank
    above: Difference | None
    precision: _Precision
    precision_rank: Rank


def _row(record: Record, path: Path, standing: _Standing) -> Row:
    spec, ranking, training = record.spec, record.ranking, record.training
    floor, precision = floor_of(record), standing.precision
    return Row(
        record=record,
        file=f"{spec.task}/{path.name}",
        label=standing.label,
        values=standing.values,
        resampled=standing.resampled,
        rank=standing.rank,
        above=standing.above,
        statistics=record.metrics[ranking.metric],
        score=_score(record),
        seed_scores=tuple(
            getattr(seed[ranking.metric], ranking.statistic) for seed in record.main.seeds
        ),
        floor_score=floor.score if floor else None,
        digits=precision.digits,
        floor_digits=precision.floor,
        attainable_digits=precision.attainable,
        missing_digits=precision.missing,
        at_floor=precision.at_floor,
        precision_rank=standing.precision_rank,
        profile=profile(standing.values) if has_digits(ranking) else None,
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


def _score(record: Record) -> float | None:
    score: float | None = getattr(record.metrics[record.ranking.metric], record.ranking.statistic)
    return score


def _precision(record: Record) -> _Precision:
    reached, floor = digits(_score(record), record.ranking), floor_of(record)
    if floor is None or floor.digits is None:
        return _Precision(reached, None, None, None)
    attainable = floor.digits
    if math.isinf(attainable):
        # A reference that computes exactly as the target does has no error: take ε² instead.
        attainable = -2 * math.log10(np.finfo(record.spec.dtype).eps)
    missing = None if reached is None else max(0.0, attainable - reached)
    return _Precision(reached, floor.digits, attainable, missing)


def _graded_for_all(values: list[np.ndarray]) -> list[np.ndarray]:
    """The values of the prompts that were graded for every record, or all if there are none."""
    graded = ~np.isnan(np.concatenate(values)).any(axis=0)
    return [v[:, graded] for v in values] if graded.any() else values
