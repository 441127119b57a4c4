"""Suites: their files, and the mistakes that are refused."""

from __future__ import annotations

import pytest

from iclbench import Suite, UsageError
from iclbench.api.config import parse_config
from iclbench.api.spec import RunSpec
from iclbench.api.suite import OF_BOARD, OF_MODEL, read_suite

TEXT = """
name = "tiny"
version = 3
summary = "two boards"

[defaults]
seeds = 2
eval_prompts = 64
chance = "zero"
task_args = { dim = 2, examples = 4 }

[[board]]
name = "plain"
task = "least-squares"

[[board]]
name = "ridge"
task = "ridge"
task_args = { dim = 3 }
dtype = "float64"
seeds = "3,7"
"""


def suite_of(**changes):
    content = {"name": "tiny", "version": 1, "summary": "one board",
               "board": [{"name": "a", "task": "t", "chance": "zero"}]}  # fmt: skip
    return parse_config(Suite, {**content, **changes}, "suite")


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("x = " + "[" * 100_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        read_suite(path)


def test_a_board_has_the_defaults_and_what_it_sets_itself(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT.replace('"3,7"', "[3, 7]"))
    suite = read_suite(path)
    plain, ridge = suite.boards
    assert plain.request("m").task_args == {"dim": 2, "examples": 4}
    assert plain.request("m").seeds == (0, 1)
    assert (plain.chance, plain.reference) == ("zero", None)
    request = ridge.request("m", recipe="smoke", seeds=1)
    assert request.task_args == {"dim": 3}
    assert (request.model, request.dtype, request.recipe) == ("m", "float64", "smoke")
    assert ridge.request("m").seeds == (3, 7)
    assert request.seeds == (0,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"board": []}, "at least 1 item"),
        ({"name": "Tiny Suite"}, "is not a name"),
        ({"version": 0}, "greater than or equal to 1"),
        ({"boards": []}, "unknown field 'boards'; did you mean board"),
        ({"board": [{"name": "a", "task": "t"}]}, "board a: chance: Field required"),
        ({"board": [{"task": "t", "chance": "zero"}]}, r"board \?: name: Field required"),
        ({"board": [{"name": "a", "chance": "zero"}]}, "board a: task is missing"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "model": "m"}]}, "unknown field"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "task_arg": {}}]},
         "unknown field 'task_arg'; did you mean 'task_args'"),
        ({"board": [{"name": "a", "task": "t", "chance": "z", "budget": "ten"}]}, "duration"),
        ({"board": [{"name": "a", "task": "t", "chance": "z"}] * 2}, "two boards have the name"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_the_board(changes, message):
    with pytest.raises(UsageError, match=message) as caught:
        suite_of(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "name = ", "[board]\nname = 'a'"])
def test_a_file_that_is_no_suite_is_refused_by_name(tmp_path, text):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"odd\.toml"):
        read_suite(path)
    with pytest.raises(UsageError, match=r"missing\.toml"):
        read_suite(tmp_path / "missing.toml")


def test_the_fields_of_model_and_board_are_fields_of_a_run():
    assert RunSpec.model_fields.keys() > OF_MODEL | OF_BOARD
    assert not OF_MODEL & OF_BOARD
