"""Weights that were published before: a second row of them would claim another's training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from torch import Tensor

from ..api.errors import PLUGIN_FAILURES, RecordError
from ..api.record import Record
from ..runs.objects import Objects
from ..runs.store import RecordStore, read_record
from ..runs.weights_facts import are_alike, trained_states
from ..training.checkpoints import load_weights
from .board import comparable_facts


def require_own_weights(path: Path, record: Record, others: Iterable[tuple[Path, Record]]) -> None:
    """Raise RecordError if a seed's weights are nearly those of another row on the same board.

    Two trainings that start from one construction may end near it, so they are not compared.
    """
    if record.weights_file is None or record.spec.init is not None:
        return
    facts, own = comparable_facts(record), _states(path, record)
    for other_path, other in others:
        if (
            other.id == record.id
            or other.weights_file is None
            or other.spec.init is not None
            or other.spec.model != record.spec.model
            or comparable_facts(other) != facts
        ):
            continue
        published = _states(other_path, other)
        if any(are_alike(state, known) for state in own for known in published):
            raise RecordError(f"{path}: its weights are those of {other_path}")


def published_of_task(record: Record, store: RecordStore) -> Iterator[tuple[Path, Record]]:
    """The sound records of the same task and model in a store."""
    for path in store.paths():
        if path.parent.name == record.spec.task and path.name.startswith(f"{record.spec.model}-"):
            try:
                yield path, read_record(path)
            except PLUGIN_FAILURES:
                continue  # an unsound record has no row


def _states(path: Path, record: Record) -> list[dict[str, Tensor]]:
    assert record.weights_file is not None
    weights = load_weights(Objects.beside(path).sound_path(record.weights_file))
    return [state for _, state in trained_states(weights.states, record.spec.freeze)]
