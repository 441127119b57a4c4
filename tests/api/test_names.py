"""Names and texts of records: what may name a file, and what can be shown."""

from __future__ import annotations

import math

import pytest

from iclbench import RunSpec, UsageError
from iclbench.api.config import parse_config
from iclbench.api.names import (
    MOST_TEXT,
    content_problem,
    is_finite_number,
    is_number,
    is_plain_name,
    is_visible,
    visible,
    without_nonfinite,
)


@pytest.mark.parametrize(
    "name", ["zero", "least-squares", "a_b", "a.json", "gpt+x", "X1", "console", "com0"]
)
def test_plain_names(name):
    assert is_plain_name(name)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/b", "a\\b", "a..b", ".a", "-a", "a-", "a b", "a\n", "é", "a\0",
     "a" * 101, "a:b", "a|b", "<b>", "\u202ea", "con", "NUL", "aux.json", "com1", "lpt9.tar.gz"],
)  # fmt: skip
def test_names_that_are_not_plain(name):
    assert not is_plain_name(name)


@pytest.mark.parametrize(
    "text",
    ["a\nb", "a\tb", "\x1b[31m", "\x00", "\u202eevil", "\u2066", "\u200b", "\ud800", "\u2028",
     "\ufeff", "\ue000", "\u3164", "\u2800", "a\u034f", "a\ufe00", "a\u0336", "a\u20dd"],
)  # fmt: skip
def test_invisible_characters_are_refused_in_values_and_in_keys(text):
    assert "invisible" in content_problem({"a": [1, {"b": text}]})
    assert "invisible" in content_problem({"a": [1, {text: "b"}]})
    assert is_visible(visible(text))
    assert len(visible(text)) == len(text)


@pytest.mark.parametrize(
    "text", ["", "NVIDIA H100 80GB", "−1 · × 日本語 é e\u0301 נִ 🏽", "a|b <c> `d` [e]"]
)
def test_visible_texts_stay(text):
    assert content_problem({text: text}) is None
    assert visible(text) == text


def nested(depth: int) -> list:
    content: list = []
    for _ in range(depth):
        content = [content]
    return content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (math.inf, "not finite"),
        (math.nan, "not finite"),
        (2**63, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ("x" * (MOST_TEXT + 1), "characters"),
        (nested(100_000), "deep"),
        (object(), "no place in JSON"),
    ],
)
def test_what_a_record_can_t_hold(content, reason):
    problem = content_problem({"place": content})
    assert problem.startswith("place")
    assert reason in problem
    assert len(problem) < 300


def test_numbers_that_python_does_not_print_are_refused():
    number = 16**5000  # as a TOML file may hold it
    assert "64 bits" in content_problem([number])
    with pytest.raises(UsageError, match="eval_seed"):
        parse_config(RunSpec, {"model": "m", "task": "t", "eval_seed": -number}, "run")


def test_what_a_record_can_hold():
    assert content_problem({"a": [1, -(2**63), 2**63 - 1, 0.5, None, True, "x"], "b": {}}) is None
    assert content_problem(nested(49)) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"weights": "a\nb"},
        {"model_args": {"x": math.inf}},
        {"model_args": {"x": nested(60)}},
        {"task_args": {"x\x1b": 1}},
        {"eval_seed": 2**64},
        {"freeze": ("a\nb",)},
    ],
)
def test_a_request_that_its_record_could_not_hold_is_refused(fields):
    with pytest.raises(UsageError) as error:
        parse_config(RunSpec, {"model": "m", "task": "t", **fields}, "run")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


def test_truth_values_are_no_numbers():
    values = [1, 0.5, math.nan, True, "1", None]
    assert [is_number(value) for value in values] == [True, True, True, False, False, False]
    assert [is_finite_number(value) for value in values] == [True, True, *[False] * 4]


def test_numbers_that_json_lacks_become_null():
    assert without_nonfinite({"a": (1, math.nan), "b": [math.inf, "x"]}) == {
        "a": [1, None],
        "b": [None, "x"],
    }
