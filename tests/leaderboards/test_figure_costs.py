"""Figures of the validation against the cost of training."""

from __future__ import annotations

import pytest

from iclbench import UsageError, run
from iclbench.leaderboards.figures.draw import draw
from iclbench.sweeps.figure import Figure

TINY = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 32,
        "recipe": "smoke", "seeds": 2}  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return [run("baseconv", **TINY, model_args={"layers": n}, out=folder) for n in (1, 2)]


def test_a_model_whose_operations_are_unknown_is_not_drawn_against_them(records):
    """Unknown points would be references over the whole axis, one for each."""
    known, other = records
    curve = known.validation_curve
    unknown = curve.model_copy(update={"operations": [None] * len(curve.steps)})
    unknown = known.model_copy(update={"validation_curve": unknown})
    assert len(draw(Figure(x="operations"), [unknown, other]).data) == 1
    assert len(draw(Figure(x="steps"), [unknown, other]).data) == 2
    with pytest.raises(UsageError, match="the operations of these models can't be counted"):
        draw(Figure(x="operations"), [unknown])
