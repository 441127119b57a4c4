"""Weights or formulas that were published before: a second row would claim to be another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ..api.errors import PLUGIN_FAILURES, RecordError, reason_of
from ..api.record import Record
from ..runs.alike import answer_alike
from ..runs.facts import recompute
from ..runs.store import RecordStore, read_record, read_values
from ..runs.weights_facts import (
    Trained,
    are_copies,
    built_models,
    is_construction,
    trained_models,
)
from .argument_numbers import FOLLOWS
from .board import comparable_facts


def require_own_weights(path: Path, record: Record, others: Iterable[tuple[Path, Record]]) -> None:
    """Raise RecordError if a seed has nearly the weights or the answers of another of its board.

    Two trainings that start from one construction may end near it, so they are not compared. Raises
    RecordError too, naming the other row, if that one can't be built any more.
    """
    if not _has_own_weights(record):
        return
    on_board = [(p, other) for p, other in others if _may_be_copied(other, record)]
    comparable = [(p, other) for p, other in on_board if other.spec.model == record.spec.model]
    models = _trained(path, record) if comparable else []
    for other_path, other in comparable:
        try:
            known = _trained(other_path, other)
        except PLUGIN_FAILURES as error:
            raise RecordError(
                f"{path}: its weights can't be compared with those of {other_path}, a row that "
                f"can't be built any more: {reason_of(error)}"
            ) from None
        if any(are_copies(model, copy) for model in models for copy in known):
            raise RecordError(f"{path}: its weights are those of {other_path}")
    _require_own_answers(path, record, on_board)


def _require_own_answers(path: Path, record: Record, others: Sequence[tuple[Path, Record]]) -> None:
    """Raise RecordError if a seed answers like one of another row, of whichever model."""
    own = _by_seed(path, record) if others else []
    for other_path, other in others:
        theirs = _by_seed(other_path, other)
        if any(answer_alike(values, known) for values in own for known in theirs):
            raise RecordError(f"{path}: its answers are those of {other_path}")


def _by_seed(path: Path, record: Record) -> list[dict[str, np.ndarray]]:
    """The values of each seed, by metric."""
    values = read_values(path, record.main.values)
    return [{n: array[i] for n, array in values.items()} for i in range(len(record.seeds))]


def _may_be_copied(other: Record, record: Record) -> bool:
    """Whether the other record is on the same board, with weights of its own."""
    return (
        other.id != record.id
        and _has_own_weights(other)
        and comparable_facts(other) == comparable_facts(record)
    )


def require_own_formula(path: Path, record: Record, others: Iterable[tuple[Path, Record]]) -> None:
    """Raise RecordError for a solver or construction that differs from another in metrics alone.

    On a board, such rows could not be told apart.
    """
    if record.spec.origin not in FOLLOWS:
        return
    formula = _without_metrics(record)
    for other_path, other in others:
        if other.id != record.id and _without_metrics(other) == formula:
            raise RecordError(f"{path}: it differs from {other_path} only in its metrics")


def _without_metrics(record: Record) -> str:
    """The id that the record would have without further metrics."""
    return record.spec.model_copy(update={"metrics": ()}).id


def _has_own_weights(record: Record) -> bool:
    """Whether the record has weights that are not those of a construction, trained or not."""
    return record.weights_file is not None and not is_construction(record.spec)


def published_of_task(record: Record, store: RecordStore) -> Iterator[tuple[Path, Record]]:
    """The sound records of the same task in a store."""
    for path in store.paths():
        if path.parent.name == record.spec.task:
            try:
                yield path, read_record(path)
            except PLUGIN_FAILURES:
                continue  # an unsound record has no row


def _trained(path: Path, record: Record) -> list[Trained]:
    now = recompute(path, record)
    assert now.weights is not None
    states = now.weights.states
    return trained_models(built_models(now.plan, states), states, record.spec)
