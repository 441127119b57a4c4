"""Weights or formulas that were published before: a second row would claim to be another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch

from ..api.errors import PLUGIN_FAILURES, RecordError, reason_of
from ..api.record import Record
from ..files import RECORDS, STUDIES
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

#: Weights that are nearly another's are a copy where most values agree to within this part …
NEAR_ANSWERS = 1e-3
#: … or where a model has so many of them: two trainings of fewer may end at one optimum.
MANY_WEIGHTS = 1_000


def require_own_weights(path: Path, record: Record, others: Iterable[tuple[Path, Record]]) -> None:
    """Raise RecordError if a seed's weights or answers are those of another row of the board.

    Weights that are near are those of another row where there are many of them, or the answers are
    near too: small models may end near each other. Trainings that start from one construction may
    do so with the same answers, so of these only equal weights are refused. Raises RecordError too,
    naming the other row, if that one can't be built any more and has nearly the same answers.
    """
    on_board = [(p, other) for p, other in others if _may_be_copied(other, record)]
    for other_path, other in on_board:
        if other.weights_file == record.weights_file:
            raise RecordError(f"{path}: its weights are those of {other_path}")
        if _without_seeds(other) == _without_seeds(record):
            raise RecordError(
                f"{path}: it is the run of {other_path} with other seeds; rows are not replaced"
            )
        if _begin_alike(record, other):
            _require_other_bits(path, record, other_path, other)
        else:
            _require_apart(path, record, other_path, other)


def _require_apart(path: Path, record: Record, other_path: Path, other: Record) -> None:
    """Raise RecordError if a seed answers like one of the other row, or nearly and has its weights.

    Symmetries of the weights, and other models with the same tensors, give the same answers.
    """
    own = _by_seed(path, record)
    try:
        theirs = _by_seed(other_path, other)
    except RecordError:
        return  # a damaged record has no row
    pairs = list(product(own, theirs))
    if any(answer_alike(*pair) for pair in pairs):
        raise RecordError(f"{path}: its answers are those of {other_path}")
    if other.spec.model != record.spec.model:
        return
    is_near = any(answer_alike(*pair, nearly=NEAR_ANSWERS) for pair in pairs)
    models = _trained(path, record)
    # From the same given weights, many may stay near each other.
    is_telling = len(models[0].weights) >= MANY_WEIGHTS and models[0].start is not None
    if not is_near and not is_telling:
        return
    try:
        known = _trained(other_path, other)
    except PLUGIN_FAILURES as error:
        if not is_near:
            return
        raise RecordError(
            f"{path}: its weights can't be compared with those of {other_path}, a row that "
            f"can't be built any more: {reason_of(error)}"
        ) from None
    if any(are_copies(*pair) for pair in product(models, known)):
        raise RecordError(f"{path}: its weights are those of {other_path}")


def _require_other_bits(path: Path, record: Record, other_path: Path, other: Record) -> None:
    """Raise RecordError if a seed has the other's tensors, whatever the files look like."""
    models = [model.weights for model in _trained(path, record)]
    try:
        known = [model.weights for model in _trained(other_path, other)]
    except PLUGIN_FAILURES:
        return
    if any(torch.equal(*pair) for pair in product(models, known)):
        raise RecordError(f"{path}: its weights are those of {other_path}")


def require_own_training(path: Path, record: Record, leaderboards: Path) -> None:
    """Raise RecordError if other published settings gave these weights, on any board or study.

    A row of a study claims what its settings lead to, and may be on no board.
    """
    spec, weights = record.spec, record.weights_file
    if spec.origin != "trained" or weights is None:
        return
    for other_path in _published(leaderboards):
        if weights.sha256.encode() not in other_path.read_bytes():
            continue
        try:
            other = read_record(other_path)
        except PLUGIN_FAILURES:
            continue
        is_same = other.weights_file == weights and other.spec.model == spec.model
        if is_same and other.spec.origin == "trained" and _training(other) != _training(record):
            raise RecordError(f"{path}: its weights are those of {other_path}, by other settings")
    for folder in _studies(leaderboards):
        others = published_of_task(record, RecordStore(folder))
        differing = [pair for pair in others if _without_seeds(pair[1]) != _without_seeds(record)]
        require_own_weights(path, record, differing)


def _published(leaderboards: Path) -> Iterator[Path]:
    for folder in (leaderboards / RECORDS, *_studies(leaderboards)):
        yield from RecordStore(folder).paths()


def _studies(leaderboards: Path) -> list[Path]:
    return sorted(path for path in (leaderboards / STUDIES).glob("*") if path.is_dir())


def _training(record: Record) -> dict[str, object]:
    """What a training is said to be, besides its model and task."""
    names = {"recipe", "recipe_args", "budget", "seeds", "init", "checkpoint_digest", "freeze"}
    return record.spec.model_dump(include=names)


def _by_seed(path: Path, record: Record) -> list[dict[str, np.ndarray]]:
    """The values of each seed, by metric."""
    values = read_values(path, record.main.values)
    return [{n: array[i] for n, array in values.items()} for i in range(len(record.seeds))]


def _may_be_copied(other: Record, record: Record) -> bool:
    """Whether both records have weights, on the same board."""
    return (
        other.id != record.id
        and None not in {other.weights_file, record.weights_file}
        and comparable_facts(other) == comparable_facts(record)
    )


def _begin_alike(record: Record, other: Record) -> bool:
    """Whether both are of one construction, trained or not."""
    starts = {one.spec.init or one.spec.weights for one in (record, other)}
    return len(starts) == 1 and is_construction(record.spec) and is_construction(other.spec)


def _without_seeds(record: Record) -> str:
    """The id that the record would have with other seeds."""
    return record.spec.model_copy(update={"seeds": ()}).id


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
