"""Numbers in the arguments of solvers and constructions could be fitted to the prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iclbench import RecordStore, run
from iclbench.api.errors import RecordError
from iclbench.leaderboards.argument_numbers import (
    FOLLOWS,
    MOST_NUMBERS,
    numbers_in,
    require_few_numbers,
)
from iclbench.leaderboards.pull_request import file_problems
from iclbench.runs.store import read_record

TASK = {"task": "categorical", "task_args": {"classes": 6, "dim": 3}, "eval_prompts": 16}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory) -> Path:
    """A solver's record with a matrix of 18 numbers."""
    matrix = [[0.1 * i + j for j in range(3)] for i in range(6)]
    out = tmp_path_factory.mktemp("fitted")
    return run("functional-gd", **TASK, model_args={"embedding": matrix}, out=out).path


def test_such_a_record_is_refused(cli, fitted, tmp_path):
    outcome = cli("submit", fitted, "--to", tmp_path / "boards", "--held-out")
    assert outcome.code == 2
    assert "numbers can be fitted to the evaluation prompts" in outcome.err + outcome.out
    assert not (tmp_path / "boards").exists()


def test_a_pull_request_is_refused_too(fitted):
    (problem,) = file_problems(fitted.parents[1], [fitted])
    assert "numbers can be fitted to the evaluation prompts" in problem


def test_trained_weights_and_few_numbers_are_accepted(fitted):
    record = read_record(fitted)
    trained = record.spec.model_copy(update={"origin": "trained"})
    require_few_numbers(record.model_copy(update={"spec": trained}))
    built = record.spec.model_copy(update={
        "origin": "constructed", "model_args": {}, "weights_args": {"a": [0.5] * MOST_NUMBERS}
    })  # fmt: skip
    require_few_numbers(record.model_copy(update={"spec": built}))
    more = built.model_copy(update={"model_args": {"b": 0.5}})
    with pytest.raises(RecordError, match="arguments hold 17 numbers"):
        require_few_numbers(record.model_copy(update={"spec": more}))


def test_numbers_are_counted_at_every_depth():
    assert numbers_in({"a": [1, [2.5, {"b": 3.0}]], "c": True, "d": "0.5", "e": None}) == 3


def test_no_published_record_is_near_the_limit():
    store = RecordStore(Path(__file__).parents[2] / "leaderboards" / "records")
    specs = [json.loads(path.read_text("utf-8"))["spec"] for path in store.paths()]
    arguments = [[s["model_args"], s["weights_args"]] for s in specs if s["origin"] in FOLLOWS]
    assert arguments
    assert max(map(numbers_in, arguments)) <= MOST_NUMBERS // 2
