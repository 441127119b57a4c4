"""Which rows may represent their model, in an overview, a plot, a suite or on a scale.

A row that has no rank for a reason of its training comes after those that have one, whatever their
scores. Else the best of many trainings with one seed would stand for the model, or weights that
were given and hardly trained.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from ..api.record import Record
from .row import Row, credible, is_over_budget


def is_one_training(record: Record) -> bool:
    """Whether a record is of one trained seed, so that its differences are those of that seed."""
    return record.spec.origin == "trained" and len(record.seeds) == 1


def starts_from_given(record: Record) -> bool:
    """Whether the training started from the weights of a construction or a file."""
    return record.spec.origin == "trained" and record.spec.init is not None


def has_chosen_seeds(record: Record) -> bool:
    """Whether the seeds are others than 0, 1, 2, …: they may be the best of many."""
    seeds = sorted(record.spec.seeds)
    return record.spec.origin == "trained" and seeds != list(range(len(seeds)))


def has_only_diverged(record: Record) -> bool:
    """Whether every seed's training diverged: what is measured may be the initial weights."""
    is_trained = record.spec.origin == "trained"
    return is_trained and all(seed.diverged_at is not None for seed in record.seeds)


def weakness(record: Record) -> int:
    """Rank how weakly a record represents its model, from 0 to 3.

    0: several seeds 0, 1, 2, … from random weights, or nothing trained; 1: a single seed, chosen
    ones, much more training than its budget, or a training that diverged for every seed; 2 or 3: a
    training that starts from given weights.
    """
    reasons = (is_one_training, has_chosen_seeds, is_over_budget, has_only_diverged)
    return 2 * starts_from_given(record) + any(reason(record) for reason in reasons)


def _model_of(row: Row) -> Hashable:
    return row.origin, row.record.spec.model


def representing(rows: Iterable[Row], subject: Callable[[Row], Hashable] = _model_of) -> list[Row]:
    """The rows that may represent their model with weights of one origin, in their order.

    They are the least weak of those that held-out prompts do not contradict. `subject` is what is
    represented, if it is something else.
    """
    rows = credible(rows)
    kept = least_weak([(subject(row), row.record) for row in rows])
    return [row for row, is_kept in zip(rows, kept, strict=True) if is_kept]


def least_weak(records: Sequence[tuple[Hashable, Record]]) -> list[bool]:
    """Whether each record is among the least weak of those with its subject."""
    least: dict[Hashable, int] = {}
    for subject, record in records:
        least[subject] = min(weakness(record), least.get(subject, weakness(record)))
    return [weakness(record) == least[subject] for subject, record in records]
