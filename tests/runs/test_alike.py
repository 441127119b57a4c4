"""Models that answer alike are one training, whatever was done to the weights."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from forging import states_of, values_of, with_values, with_weights
from small_runs import TINY

from iclbench import RecordStore, read_record, run, verify
from iclbench.api.spec import canonical_json
from iclbench.leaderboards.board import comparable_facts
from iclbench.runs.alike import answer_alike, seeds_alike
from iclbench.runs.store import read_values

PUBLISHED = Path(__file__).parents[2] / "leaderboards" / "records"

ERRORS = np.random.default_rng(0).lognormal(size=200)


def test_rounding_does_not_tell_models_apart():
    near = {"error": ERRORS * (1 + 1e-7)}
    assert answer_alike({"error": ERRORS}, near)
    assert seeds_alike([3, 4], {"error": np.stack([ERRORS, near["error"]])}) == [4]
    mostly = ERRORS.copy()
    mostly[:99] = 7.0
    assert answer_alike({"error": ERRORS}, {"error": mostly})


@pytest.mark.parametrize(
    "other",
    [ERRORS * (1 + 1e-3), np.append(ERRORS[1:], 1.0), np.full(200, np.nan), ERRORS[:100]],
)
def test_other_trainings_answer_otherwise(other):
    assert not answer_alike({"error": ERRORS}, {"error": other})
    assert not answer_alike({"error": ERRORS, "b": other}, {"error": ERRORS, "b": ERRORS})


def test_models_that_all_fail_or_are_all_right_are_not_copies():
    lost = np.full(200, np.inf)
    assert not answer_alike({"error": lost}, {"error": lost})
    right = np.ones(200)
    assert not answer_alike({"accuracy": right}, {"accuracy": right})
    assert answer_alike({"accuracy": right, "nll": ERRORS}, {"accuracy": right, "nll": ERRORS})


def test_seeds_that_a_symmetry_of_the_weights_tells_apart_are_one_training(tmp_path):
    """Softmax ignores what is added to all keys: the weights differ, and no answer does."""
    run(model="transformer", **TINY, out=tmp_path)
    (path,) = RecordStore(tmp_path).paths()
    assert all(check.holds for check in verify(path))
    state, values = states_of(path)[0], values_of(path)
    path = with_values(path, {name: np.stack([v[0], v[0]]) for name, v in values.items()})
    other = {name: tensor.clone() for name, tensor in state.items()}
    for name in (name for name in other if name.endswith("qkv.bias")):
        width = len(other[name]) // 3
        other[name][width : 2 * width] += 3.0
    path = with_weights(path, {0: state, 1: other})
    differing = {check.name for check in verify(path) if not check.holds}
    assert "seeds with the answers of another" in differing
    assert "seeds with the weights of another" not in differing


@pytest.mark.slow
def test_no_two_published_trainings_answer_alike():
    boards = defaultdict(list)
    for path in RecordStore(PUBLISHED).paths():
        record = read_record(path)
        if record.spec.origin == "trained":
            values = read_values(path, record.main.values)
            board = canonical_json(comparable_facts(record))
            boards[board] += [
                {name: array[i] for name, array in values.items()} for i in range(len(record.seeds))
            ]
    assert max(map(len, boards.values())) > 50
    pairs = (pair for models in boards.values() for pair in combinations(models, 2))
    assert not any(answer_alike(*pair) for pair in pairs)
