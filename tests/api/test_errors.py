"""Errors of other code in one line."""

from __future__ import annotations

import pytest

from iclbench.api.errors import first_line


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
