"""Plots in a terminal: what their axes hold."""

from __future__ import annotations

import pytest

from iclbench import run
from iclbench.display.plot import Plot, drawn, plots_of


@pytest.mark.parametrize("value", [1e-3, 1.0, 2e-3])
@pytest.mark.parametrize("log", [True, False])
def test_a_line_of_one_value_is_drawn(value, log):
    """On a logarithmic axis a power of ten alone would be a range of no height."""
    text = drawn(Plot("title", "x", [0, 1, 2], {"line": [value, None, value]}, log), 60)
    assert "title" in text
    assert "line" in text


def test_a_training_of_one_point_is_not_drawn(tmp_path):
    def plots(steps):
        small = {"model_args": {"layers": 1, "width": 4}, "task_args": {"dim": 2, "examples": 4}}
        recipe = {"recipe": "smoke", "recipe_args": {"steps": steps}}
        record = run(
            model="transformer",
            task="least-squares",
            **small,
            **recipe,
            eval_prompts=8,
            out=tmp_path,
        )
        return [plot.title.partition(":")[0] for plot in plots_of(record)]

    assert plots(5) == []
    assert plots(60) == ["validation", "training loss by step"]


def test_lines_differ_where_there_are_no_colors():
    lines = {f"seed {i}": [float(i), i + 1.0] for i in range(3)}
    text = drawn(Plot("title", "x", [0, 1], lines, False), 60, has_colors=False)
    assert [any(f"{marker}{marker} seed {i}" in line for line in text.splitlines())
            for i, marker in enumerate("x+*")] == [True] * 3  # fmt: skip
