"""Plots in a terminal: what their axes hold."""

from __future__ import annotations

import pytest

from iclbench.display.plot import Plot, drawn


@pytest.mark.parametrize("value", [1e-3, 1.0, 2e-3])
@pytest.mark.parametrize("log", [True, False])
def test_a_line_of_one_value_is_drawn(value, log):
    """On a logarithmic axis a power of ten alone would be a range of no height."""
    text = drawn(Plot("title", "x", [0, 1, 2], {"line": [value, None, value]}, log), 60)
    assert "title" in text
    assert "line" in text


def test_lines_differ_where_there_are_no_colors():
    lines = {f"seed {i}": [float(i), i + 1.0] for i in range(3)}
    text = drawn(Plot("title", "x", [0, 1], lines, False), 60, has_colors=False)
    assert [any(f"{marker}{marker} seed {i}" in line for line in text.splitlines())
            for i, marker in enumerate("x+*")] == [True] * 3  # fmt: skip
