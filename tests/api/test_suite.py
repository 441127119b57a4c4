"""Suites: what a board sets, and the mistakes that are refused."""

from __future__ import annotations

import pytest

from iclbench import Suite, UsageError
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.api.suite import OF_BOARD, OF_MODEL


def suite_of(**changes):
    content = {"name": "tiny", "version": 1, "summary": "one board",
               "board": [{"name": "a", "task": "t", "chance": "zero"}]}  # fmt: skip
    return parse_config(Suite, {**content, **changes}, "suite")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"board": []}, "at least 1 item"),
        ({"name": "Tiny Suite"}, "is not a name"),
        ({"version": 0}, "greater than or equal to 1"),
        ({"boards": []}, "unknown field 'boards'; did you mean 'board'?"),
        ({"board": [{"name": "a", "task": "t"}]}, "board a: chance: Field required"),
        ({"board": [{"task": "t", "chance": "zero"}]}, r"board \?: name: Field required"),
        ({"board": [{"name": "a", "chance": "zero"}]}, "board a: task is missing"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "model": "m"}]}, "unknown field"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "task_arg": {}}]},
         "unknown field 'task_arg'; did you mean 'task_args'"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "budget": "ten"}]}, "duration"),
        ({"summary": "\x1b]0;owned\x07 one board"}, "summary: .* has invisible characters"),
        ({"summary": "two\nlines"}, "summary: .* has invisible characters"),
        ({"summary": "s" * 501}, "summary: a text of 501 characters; at most 500 are allowed"),
        ({"name": "a" * 101}, "a name of 101 characters; at most 100 are allowed"),
        ({"board": [{"name": "b" * 101, "task": "t", "chance": "z"}]}, "a name of 101 characters"),
        ({"board": [{"name": "a", "task": "t", "chance": "z\x1b[2J"}]}, "has invisible characters"),
        ({"board": [{"name": "b" * 9_999, "task": "t", "seed": 1}]}, "b…: unknown field"),
        ({"board": [{"name": "a\x1b[2J", "task": "t", "chance": "z", "seed": 1}]},
         "has invisible characters"),
        ({"board": [{"name": "a", "task": "t", "chance": "z"}] * 2}, "two boards have the name"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_the_board(changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        suite_of(**changes)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_the_fields_of_model_and_board_are_fields_of_a_run():
    assert RunSpec.model_fields.keys() > OF_MODEL | OF_BOARD
    assert not OF_MODEL & OF_BOARD
