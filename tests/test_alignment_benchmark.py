"""The table of a study of `alignment` shows what its records hold."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

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


def statistics(median):
    return SimpleNamespace(median=median, mean=median)


def record_of(median, seeds):
    """What the table reads of a record whose statistics are all `median`."""
    metrics = defaultdict(lambda: statistics(median))
    of_seeds = [defaultdict(lambda value=value: statistics(value)) for value in seeds]
    return SimpleNamespace(
        main=SimpleNamespace(metrics=metrics, seeds=of_seeds),
        seeds=[SimpleNamespace(seed=n, diverged_at=7 if v is None else None)
               for n, v in enumerate(seeds)],
    )  # fmt: skip


def test_a_model_that_diverged_is_last():
    names, records = ["diverged", "fine"], [record_of(None, [0.5, None]), record_of(0.5, [0.5])]
    board = SimpleNamespace(frame=lambda: {"row": names}, records=records)
    fine, diverged = lines(board)
    assert (fine["model"], fine["median error"], fine["seeds"]) == ("fine", "5.0e-01", "1")
    assert (diverged["median error"], diverged["mean error"]) == ("inf", "inf")
    assert (diverged["seeds"], diverged["step"]) == ("2, 1 diverged", "0.50–inf")
    assert (diverged["distance"], diverged["cosine"]) == ("inf", "inf")
