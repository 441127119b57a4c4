"""The table of a study of `alignment` shows what its records hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.alignment import lines
from iclbench import leaderboard

STUDY = Path(__file__).parents[1] / "leaderboards" / "studies" / "least-squares-alignment"


@pytest.mark.skipif(not STUDY.exists(), reason="the published records are not here")
def test_gradient_descent_is_recognized_and_a_transformer_is_not():
    (board,) = leaderboard(STUDY)
    rows = {line["model"].split()[0]: line for line in lines(board)}
    descent, transformer = rows["gradient-descent"], rows["transformer"]
    assert (descent["seeds"], descent["k"], descent["step"]) == ("", "10", "0.70")
    assert float(descent["distance"]) < 1e-12
    assert transformer["seeds"] == "3"
    # Seeds differ in the number of steps that fits best.
    assert "–" in transformer["k"]
    assert float(transformer["distance"]) > 1e-2
    errors = [float(line["median error"]) for line in lines(board)]
    assert errors == sorted(errors)
