"""A suite's scores: where each model lies between chance and what is attainable, board by board.

On a board, a score is (value − chance) / (reference − chance): the value is the record's level, see
`level.py`, and both ends are those of `scale.suite_scale`, which knows the installed solvers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ..api.record import Record
from ..api.spec import canonical_json
from ..api.suite import Suite
from .board_names import differing_arguments
from .grouping import grouped
from .ranking import Rank
from .representative import (
    has_chosen_seeds,
    has_only_diverged,
    is_one_training,
    starts_from_given,
    weakness,
)
from .row import OPEN, is_over_budget, track_name
from .scale import Scale, Score, suite_scale
from .sizes import known_parameters
from .suite_means import mean_score, suite_ranks
from .tunings import is_tuned

#: A model with scores on a smaller part of the boards has no mean: it is of other boards.
LEAST_PART = 0.5


@dataclass(frozen=True)
class SuiteRow:
    """One line of a suite's table: a model, in one track, with its record and score per board."""

    label: str
    origin: str
    track: str
    records: dict[str, Record]
    #: By board; None where chance or the reference is not known.
    scores: dict[str, Score | None]
    #: The boards of the mean: those with a score whose reference does not depend on other rows.
    counted: tuple[str, ...]
    #: The mean over these, each score counted as at least 0 and at most 1; None for fewer than half
    #: of the suite's boards that count.
    mean: Score | None
    #: Whether the mean is over the same boards as that of other models of its track.
    is_compared: bool = False
    #: Among these models, see `suite_ranks`.
    rank: Rank | None = None
    #: Why the model can't do a board that it has no record on, as far as it is known.
    unsupported: Mapping[str, str] = field(default_factory=dict)

    @property
    def tuned(self) -> str:
        """`tuned`, `untuned`, or `tuned on` so many boards; empty if untrained."""
        if self.origin != "trained":
            return ""
        count = sum(map(is_tuned, self.records.values()))
        if count in {0, len(self.records)}:
            return "tuned" if count else "untuned"
        return f"tuned on {count}"

    def is_one_seed(self, board: str) -> bool:
        """Whether its record on the board has a single seed: no row with several is there."""
        return board in self.records and is_one_training(self.records[board])

    @property
    def has_one_seed(self) -> bool:
        """Whether any score of its mean is of a single seed."""
        return any(map(self.is_one_seed, self.counted))

    @property
    def has_doubtful_record(self) -> bool:
        """Whether any score of its mean is of a record that has no rank on its board either.

        It has one seed or chosen seeds, took much more than its budget, or diverged for every seed.
        """
        records = [self.records[board] for board in self.counted]
        return self.has_one_seed or any(
            has_chosen_seeds(r) or is_over_budget(r) or has_only_diverged(r) for r in records
        )

    @property
    def parameters(self) -> tuple[int, int] | None:
        """The fewest and the most parameters on a board; None where they are unknown."""
        counts = [known_parameters(record) for record in self.records.values()]
        known = [count for count in counts if count is not None]
        return (min(known), max(known)) if known else None


@dataclass(frozen=True)
class SuiteTable:
    """The entries of a suite: trained ones first, and of them those with the same boards, by mean.

    Other trained entries follow, those on most boards first, then those that were trained from
    given weights.
    """

    suite: Suite
    scales: dict[str, Scale]
    entries: tuple[SuiteRow, ...]

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The boards that a mean is over; others have the best row as their reference."""
        return _counted(self.suite, self.scales)


def score_suite(suite: Suite, records: Mapping[str, Sequence[Record]]) -> SuiteTable:
    """The scores of the records of each board, by the board's name."""
    scales = {board.name: suite_scale(board, records.get(board.name, ())) for board in suite.boards}
    lines: dict[str, dict[str, list[Record]]] = {}
    for board in suite.boards:
        for record in records.get(board.name, ()):
            lines.setdefault(_line_of(record), {}).setdefault(board.name, []).append(record)
    count = len(_counted(suite, scales))
    entries = _with_arguments([_entry(by_board, scales, count) for by_board in lines.values()])
    return SuiteTable(suite, scales, tuple(sorted(_compared(entries), key=_order)))


def _counted(suite: Suite, scales: Mapping[str, Scale]) -> tuple[str, ...]:
    """A board counts unless its reference is the best row: with it, no mean would stay the same."""
    return tuple(b.name for b in suite.boards if b.reference or not scales[b.name].is_relative)


def _line_of(record: Record) -> str:
    """Records with the same text are one entry: a trained model's in one track, or one formula."""
    spec = record.spec
    facts = [spec.model, spec.origin, record.track]
    if spec.origin == "trained":
        return canonical_json([*facts, bool(spec.init)])
    formula = spec.weights_args if spec.origin == "constructed" else spec.model_args
    return canonical_json([*facts, spec.weights, spec.checkpoint_digest, formula])


def _entry(
    by_board: Mapping[str, list[Record]], scales: Mapping[str, Scale], count: int
) -> SuiteRow:
    records = {name: _representative(group) for name, group in by_board.items()}
    scores = {name: scales[name].score(record) for name, record in records.items()}
    first = next(iter(records.values()))
    spec = first.spec
    weights = f" {spec.weights}" if spec.origin == "constructed" else ""
    weights += " init=given" if starts_from_given(first) else ""
    known = {n: s for n, s in scores.items() if s is not None and not scales[n].is_relative}
    mean = mean_score(known.values()) if len(known) >= LEAST_PART * count else None
    return SuiteRow(spec.model + weights, spec.origin, track_name(first), records, scores,
                    tuple(known), mean)  # fmt: skip


def _compared(entries: Iterable[SuiteRow]) -> list[SuiteRow]:
    """The entries; in each track, those that have the same boards get means over these, and ranks.

    The boards are those with which most scores are compared.
    """
    entries = list(entries)
    done = []
    for members in grouped(entries, _track).values():
        kinds = {frozenset(entry.counted) for entry in members if entry.mean is not None}
        if _track(members[0]) is None or not kinds:
            done += members
            continue
        having = {kind: [e for e in members if kind <= set(e.counted)] for kind in kinds}
        boards = max(kinds, key=lambda kind: (len(kind) * len(having[kind]), sorted(kind)))
        same = [_over(boards, entry) for entry in having[boards]]
        unranked = [e.track == OPEN or e.has_doubtful_record for e in same]
        ranked = [e for e, is_unranked in zip(same, unranked, strict=True) if not is_unranked]
        if len(ranked) > 1:
            ranks = suite_ranks([_known_scores(e) for e in ranked])
            with_rank = [replace(e, rank=rank) for e, rank in zip(ranked, ranks, strict=True)]
            without = (e for e, is_unranked in zip(same, unranked, strict=True) if is_unranked)
            same = [*with_rank, *without]
        done += same
        done += [entry for entry in members if not boards <= set(entry.counted)]
    return done


def _track(entry: SuiteRow) -> str | None:
    """The track of an entry whose mean can be compared with others; None if there is none."""
    first = next(iter(entry.records.values()))
    return None if entry.origin != "trained" or starts_from_given(first) else entry.track


def _over(boards: frozenset[str], entry: SuiteRow) -> SuiteRow:
    """The entry with its mean over these boards."""
    counted = tuple(name for name in entry.counted if name in boards)
    over = replace(entry, counted=counted, is_compared=True)
    return replace(over, mean=mean_score(_known_scores(over)))


def _known_scores(entry: SuiteRow) -> list[Score]:
    """The scores of the boards that the entry's mean is over."""
    return [score for name in entry.counted if (score := entry.scores[name])]


def _with_arguments(entries: Sequence[SuiteRow]) -> list[SuiteRow]:
    """The entries; those of one label and track get the arguments that tell them apart."""
    names = [(entry.label, entry.origin, entry.track) for entry in entries]
    differing = differing_arguments(names, [_arguments(entry) for entry in entries])
    return [
        replace(entry, label=" ".join([entry.label, *(f"{k}={v}" for k, v in args.items())]))
        for entry, args in zip(entries, differing, strict=True)
    ]


def _arguments(entry: SuiteRow) -> dict[str, object]:
    """What an entry's formula consists of; nothing of a training."""
    spec = next(iter(entry.records.values())).spec
    if spec.origin == "trained":
        return {}
    if spec.origin == "constructed":
        return spec.weights_args
    digest = spec.checkpoint_digest
    return {**spec.model_args, **({"checkpoint": digest[:8]} if digest else {})}


def _representative(records: Sequence[Record]) -> Record:
    """The record of an entry on a board: one with several seeds first, then a tuned one.

    Of these, it is the best on *validation*: what is measured on the board's prompts chooses
    nothing.
    """

    def key(record: Record) -> tuple[int, bool, bool, float, str]:
        last = _last_validation(record)
        known = [value for value in last if value is not None]
        if not known or len(known) < len(last):
            return weakness(record), not is_tuned(record), True, 0.0, record.id
        sign = 1.0 if record.ranking.better_score == "lower" else -1.0
        mean = sign * sum(known) / len(known)
        return weakness(record), not is_tuned(record), False, mean, record.id

    return min(records, key=key)


def _last_validation(record: Record) -> list[float | None]:
    """Each seed's score of the final weights, which `verify` compares; none if it is missing."""
    curve, training = record.validation_curve, record.training
    if curve is None or training is None or curve.steps[-1:] != [training.steps]:
        return []
    return [seed[-1] for seed in curve.mean if seed]


def _order(entry: SuiteRow) -> tuple[bool, bool, bool, int, str, float, str, str]:
    """The key that sorts a table: trained from random weights first, ranked rows by mean."""
    first = next(iter(entry.records.values()))
    done = sum(score is not None for score in entry.scores.values())
    return (
        entry.origin != "trained",
        starts_from_given(first),
        not entry.is_compared,
        -len(entry.counted) if entry.is_compared else -done,
        entry.track if entry.is_compared else "",
        -entry.mean.value if entry.mean else math.inf,
        entry.label,
        entry.track,
    )
