"""A suite's scores: where each model lies between chance and what is attainable, board by board.

Pure functions of records. On a board, a score is (value − chance) / (reference − chance), where
the value is the record's level, see `level.py`. The reference is the floor, such as the attainable
error; without a floor it is the solver that the suite names, or else the best row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..api.record import Record
from ..api.spec import canonical_json
from ..api.suite import Suite, SuiteBoard
from ..runs.suites import records_of_solver
from .board_names import differing_arguments
from .level import has_digits_level, is_lower_better, level_of
from .row import is_tuned, track_name

#: A model with scores on a smaller part of the boards has no mean: it is of other boards.
LEAST_PART = 0.5


class Score(NamedTuple):
    """A score, 0 at chance and 1 at the reference, with its 95% interval if there is one."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Scale:
    """The values that count as 0 and as 1 on a board; None where no record has them."""

    chance: float | None
    reference: float | None
    #: What the reference is: the floor's name, or the model's.
    reference_name: str
    #: Whether the values are digits of an error; otherwise they are means of the metric.
    in_digits: bool = False


@dataclass(frozen=True)
class Entry:
    """One line of a suite's table: a model, in one track, with its record and score per board."""

    label: str
    origin: str
    track: str
    records: dict[str, Record]
    #: By board; None where chance or the reference is not known.
    scores: dict[str, Score | None]
    #: The mean over the boards with a score, each counted as at least 0 and at most 1; None for
    #: fewer than half of the suite's boards.
    mean: Score | None

    @property
    def tuned(self) -> str:
        """Whether the arguments were tuned: yes, no, or on how many boards; empty if untrained."""
        if self.origin != "trained":
            return ""
        count = sum(map(is_tuned, self.records.values()))
        if count in {0, len(self.records)}:
            return "tuned" if count else "untuned"
        return f"tuned on {count}"

    @property
    def parameters(self) -> tuple[int, int]:
        """The fewest and the most parameters on a board."""
        counts = [record.parameters for record in self.records.values()]
        return min(counts), max(counts)


@dataclass(frozen=True)
class SuiteTable:
    """The entries of a suite: trained ones first, those on most boards, then by their mean."""

    suite: Suite
    scales: dict[str, Scale]
    entries: tuple[Entry, ...]


def score_suite(suite: Suite, records: Mapping[str, Sequence[Record]]) -> SuiteTable:
    """The scores of the records of each board, by the board's name."""
    scales = {board.name: scale_of(board, records.get(board.name, ())) for board in suite.boards}
    lines: dict[str, dict[str, list[Record]]] = {}
    for board in suite.boards:
        for record in records.get(board.name, ()):
            lines.setdefault(_line_of(record), {}).setdefault(board.name, []).append(record)
    entries = _with_arguments([_entry(by_board, scales) for by_board in lines.values()])
    entries.sort(key=_order)
    return SuiteTable(suite, scales, tuple(entries))


def scale_of(board: SuiteBoard, records: Sequence[Record]) -> Scale:
    """What counts as 0 and as 1 on a board."""
    chance = records_of_solver(board, board.chance, records)
    low = level_of(chance[0]).value if chance else None
    in_digits = bool(records) and has_digits_level(records[0])
    for record in records:
        floor = record.floor.get(record.ranking.metric)
        if floor is not None:
            return Scale(low, level_of(record, floor).value, record.main.floor.name, in_digits)
    named = records_of_solver(board, board.reference, records) if board.reference else []
    candidates = named or [r for r in records if r.spec.model != board.chance]
    values = [(value, r) for r in candidates if (value := level_of(r).value) is not None]
    if not values:
        return Scale(low, None, board.reference or "best row", in_digits)
    sign = -1.0 if is_lower_better(values[0][1]) else 1.0
    value, best = max(values, key=lambda pair: sign * pair[0])
    name = best.spec.model if named else f"best row: {best.spec.model}"
    return Scale(low, value, name, in_digits)


def score_of(record: Record, scale: Scale) -> Score | None:
    """The record's score; None where the scale is not known or has no length.

    Chance and reference are taken as known: they have the same prompts. A best row as reference
    was trained, so its own uncertainty is missing in the interval.
    """
    if scale.chance is None or scale.reference is None:
        return None
    length = scale.reference - scale.chance
    is_upward = not is_lower_better(record)
    if length == 0 or not math.isfinite(length) or (length > 0) != is_upward:
        return None
    value, *bounds = level_of(record)
    if value is None:
        return Score(0.0, None, None)  # it is not finite, so no better than chance
    scaled = [None if b is None else (b - scale.chance) / length for b in bounds]
    low, high = scaled if is_upward else scaled[::-1]
    return Score((value - scale.chance) / length, low, high)


def mean_score(scores: Iterable[Score]) -> Score | None:
    """The mean of boards' scores, each counted as at least 0 and at most 1, with its interval.

    A reference may be far below what can be reached, and errors have no lowest score: a mean of
    scores as they are would be that of one board.

    Boards are independent, so the squared distances of the bounds add up (Zou and Donner 2008).
    """
    counted = [_within_scale(score) for score in scores]
    if not counted:
        return None
    count = len(counted)
    mean = sum(score.value for score in counted) / count
    downward = upward = 0.0
    for value, low, high in counted:
        if low is None or high is None:
            return Score(mean, None, None)
        downward += (value - low) ** 2
        upward += (high - value) ** 2
    return Score(mean, mean - math.sqrt(downward) / count, mean + math.sqrt(upward) / count)


def _within_scale(score: Score) -> Score:
    low, high = (None if b is None else min(1.0, max(0.0, b)) for b in (score.low, score.high))
    return Score(min(1.0, max(0.0, score.value)), low, high)


def _line_of(record: Record) -> str:
    """Records with the same text are one entry: a trained model's in one track, or one formula."""
    spec = record.spec
    facts = [spec.model, spec.origin, record.track]
    if spec.origin == "trained":
        return canonical_json([*facts, bool(spec.init)])
    formula = spec.weights_args if spec.origin == "constructed" else spec.model_args
    return canonical_json([*facts, spec.weights, spec.checkpoint_digest, formula])


def _entry(by_board: Mapping[str, list[Record]], scales: Mapping[str, Scale]) -> Entry:
    records = {name: _representative(group) for name, group in by_board.items()}
    scores = {name: score_of(record, scales[name]) for name, record in records.items()}
    first = next(iter(records.values()))
    spec = first.spec
    weights = f" {spec.weights}" if spec.origin == "constructed" else ""
    known = [score for score in scores.values() if score is not None]
    mean = mean_score(known) if len(known) >= LEAST_PART * len(scales) else None
    return Entry(spec.model + weights, spec.origin, track_name(first), records, scores, mean)


def _with_arguments(entries: Sequence[Entry]) -> list[Entry]:
    """The entries; those of one label and track get the arguments that tell them apart."""
    names = [(entry.label, entry.origin, entry.track) for entry in entries]
    differing = differing_arguments(names, [_arguments(entry) for entry in entries])
    return [
        replace(entry, label=" ".join([entry.label, *(f"{k}={v}" for k, v in args.items())]))
        for entry, args in zip(entries, differing, strict=True)
    ]


def _arguments(entry: Entry) -> dict[str, object]:
    """What an entry's formula consists of; of a training, what it started from."""
    spec = next(iter(entry.records.values())).spec
    if spec.origin == "trained":
        return {"init": "given" if spec.init else "random"}
    if spec.origin == "constructed":
        return spec.weights_args
    digest = spec.checkpoint_digest
    return {**spec.model_args, **({"checkpoint": digest[:8]} if digest else {})}


def _representative(records: Sequence[Record]) -> Record:
    """The record of an entry on a board: a tuned one first, then the best on *validation*.

    What is measured on the board's prompts chooses nothing.
    """

    def key(record: Record) -> tuple[bool, bool, float, str]:
        curve = record.validation_curve
        last = [seed[-1] for seed in curve.mean if seed] if curve else []
        known = [value for value in last if value is not None]
        if not known or len(known) < len(last):
            return not is_tuned(record), True, 0.0, record.id
        sign = 1.0 if record.ranking.better_score == "lower" else -1.0
        return not is_tuned(record), False, sign * sum(known) / len(known), record.id

    return min(records, key=key)


def _order(entry: Entry) -> tuple[bool, int, float, str]:
    done = sum(score is not None for score in entry.scores.values())
    return (
        entry.origin != "trained",
        -done,
        -entry.mean.value if entry.mean else math.inf,
        entry.label,
    )
