"""Names of boards that tell those of one list apart."""

from __future__ import annotations

import pytest

from iclbench import run
from iclbench.leaderboards.board_names import board_names, differing_arguments, told_apart


def test_parts_are_added_where_equal_names_have_different_ones():
    assert told_apart(["a", "a", "b"], ["1", "2", "3"]) == ["a, 1", "a, 2", "b"]
    assert told_apart(["a", "a"], ["1", "1"], " ") == ["a", "a"]


def test_arguments_that_all_of_a_name_have_do_not_differ():
    arguments = [{"dim": 2, "noise": 0}, {"dim": 3, "noise": 0}, {"dim": 4}]
    assert differing_arguments(["a", "a", "b"], arguments) == [{"dim": 2}, {"dim": 3}, {}]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    def made(dim, prompts, dtype="float32"):
        args = {"dim": dim, "examples": 4}
        return run(model="zero", task="least-squares", task_args=args, eval_prompts=prompts,
                   dtype=dtype, out=tmp_path_factory.mktemp("out"))  # fmt: skip

    return made


def test_boards_are_named_by_what_differs(record):
    assert board_names([record(2, 16)]) == ["least-squares"]
    assert board_names([record(2, 16), record(3, 16), record(3, 16, "float64")]) == [
        "least-squares dim=2", "least-squares dim=3", "least-squares float64"
    ]  # fmt: skip
    assert board_names([record(2, 16), record(2, 32)]) == [
        "least-squares 16 prompts", "least-squares 32 prompts"
    ]  # fmt: skip


def test_versions_and_evaluation_seeds_tell_boards_apart(record):
    first = record(2, 16)
    newer = first.model_copy(update={"spec": first.spec.model_copy(update={"task_version": 9})})
    assert board_names([first, newer]) == ["least-squares version 2", "least-squares version 9"]
    other = first.model_copy(update={"spec": first.spec.model_copy(update={"eval_seed": 5})})
    names = ["least-squares evaluation seed 0", "least-squares evaluation seed 5"]
    assert board_names([first, other]) == names
