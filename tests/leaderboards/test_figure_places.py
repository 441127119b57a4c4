"""Places on the x axis of a figure."""

from __future__ import annotations

import pytest

from iclbench import UsageError, sweep
from iclbench.leaderboards.figures.draw import draw
from iclbench.sweeps.figure import Figure


def test_lists_are_categories_and_tables_are_refused(tmp_path):
    grid = {"model": "lsa", "task": "least-squares", "recipe": "smoke", "eval_prompts": 32}
    records = sweep({"grid": [{**grid, "seeds": n} for n in (2, 3)]}, out=tmp_path).records
    lines = [trace for trace in draw(Figure(x="seeds"), records).data if trace.x]
    assert {x for line in lines for x in line.x} == {"0-1", "0-2"}
    with pytest.raises(UsageError, match="model_args is a table: name one of its arguments"):
        draw(Figure(x="model_args"), records)
