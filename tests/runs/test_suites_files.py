"""Suites in files: what their boards set, and the files that are refused."""

from __future__ import annotations

import os

import pytest

from iclbench import UsageError
from iclbench.runs.suites import find_suite

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


def test_a_board_has_the_defaults_and_what_it_sets_itself(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT.replace('"3,7"', "[3, 7]"))
    suite = find_suite(str(path))
    plain, ridge = suite.boards
    assert plain.request("m").task_args == {"dim": 2, "examples": 4}
    assert plain.request("m").seeds == (0, 1)
    assert (plain.chance, plain.reference) == ("zero", None)
    request = ridge.request("m", recipe="smoke", seeds=1)
    assert request.task_args == {"dim": 3}
    assert (request.model, request.dtype, request.recipe) == ("m", "float64", "smoke")
    assert ridge.request("m").seeds == (3, 7)
    assert request.seeds == (0,)


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("x = " + "[" * 100_000)
    with pytest.raises(UsageError, match="nested too deeply"):
        find_suite(str(path))


@pytest.mark.parametrize("text", ["", "name = ", "[board]\nname = 'a'"])
def test_a_file_that_is_no_suite_is_refused_by_name(tmp_path, text):
    path = tmp_path / "odd.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"odd\.toml"):
        find_suite(str(path))
    with pytest.raises(UsageError, match=r"missing\.toml"):
        find_suite(str(tmp_path / "missing.toml"))


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a regular file"):
        find_suite(str(path))


def test_an_error_names_the_file_once(tmp_path):
    path = tmp_path / "missing.toml"
    with pytest.raises(UsageError) as caught:
        find_suite(str(path))
    assert str(caught.value) == f"{path} can't be read: No such file or directory"
