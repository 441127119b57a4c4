"""Errors of other code in one line."""

from __future__ import annotations

import pytest
import torch

from iclbench.api.errors import RunError, first_line, reason_of, unknown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("", "ValueError"),
        ("\n too small\nat 3", "ValueError: too small"),
        (f"No branches. See https://{'x' * 200}", "ValueError: No branches."),
        ("y" * 300, f"ValueError: {'y' * 159}…"),
    ],
)
def test_the_first_line_of_a_message_ends_with_a_sentence(message, shown):
    assert first_line(ValueError(message)) == shown


class SilentError(Exception):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RunError("it\n failed"), "it failed"),
        (RunError(), "RunError"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (ValueError("y" * 2000), f"ValueError: {'y' * 1000}"),
        (SilentError(), "SilentError"),
    ],
)
def test_a_reason_is_one_line_of_bounded_length(error, reason):
    assert reason_of(error) == reason


def test_too_little_memory_is_told_in_gigabytes():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    expected = "RuntimeError: not enough memory for another 4e+06 GB"
    assert reason_of(caught.value) == first_line(caught.value) == expected


def test_the_first_line_of_an_error_whose_message_fails_is_its_type():
    assert first_line(SilentError()) == "SilentError"


def test_of_many_names_some_are_listed():
    names = [f"n{i:02}" for i in range(30)]
    assert str(unknown("model", "zebra", names[:2])) == "unknown model 'zebra'; known: n00, n01"
    assert str(unknown("model", "zebra", names)).endswith("n22, n23, … (30 in all)")
    twice = unknown("recipe", "zebra", ["quick", "smoke", "quick"])
    assert str(twice) == "unknown recipe 'zebra'; known: quick, smoke"
