"""A run's page in words: the held-out test with its level, and times with the clock of each."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from iclbench.api.costs import BudgetReport
from iclbench.leaderboards import formats
from iclbench.leaderboards.site.run_parts import (
    claims_in_words,
    held_out,
    training_speed,
    wall_clock,
)
from iclbench.runs.facts import claims
from iclbench.runs.heldout import HeldOut, HeldOutDifference
from iclbench.runs.objects import Objects


@pytest.fixture(scope="module")
def row(board):
    return next(row for row in board.rows if row.is_trained)


def on_held_out_prompts(row, **difference):
    part = HeldOutDifference(**{"mean": -0.03, "low": -0.0526, "high": -0.0004, "p": 0.047,
                                "rank_p": 0.06, "better": 0.48} | difference)  # fmt: skip
    kept = HeldOut.model_construct(statistics=row.statistics, difference=part,
                                   created="2026-11-23T00:00:00Z")  # fmt: skip
    return replace(row, held_out=kept)


def test_the_held_out_test_names_its_level_and_an_interval_shows_its_ends(row):
    text = held_out(on_held_out_prompts(row))
    assert "difference −0.0300, 95% interval [−0.0526, −0.0004]" in text
    assert "p = 0.047 by Welch's test; better in 48% of pairs of prompts, p = 0.06 by" in text
    assert "by ranks; not significant: with hundreds of rows, the level is 0.0005" in text
    assert text.endswith("prompts of 2026-11-23")
    text = held_out(on_held_out_prompts(row, p=1e-30))
    assert "p < 1e−10 by Welch's test; better" in text
    assert "by ranks; significant: " in text


def test_a_difference_that_is_not_finite_and_a_row_without_prompts(row, board):
    text = held_out(on_held_out_prompts(row, mean=None, p=None))
    assert "difference unknown; better in 48% of pairs of prompts, p = 0.06 by ranks" in text
    assert held_out(row) == "none"
    assert held_out(next(r for r in board.rows if not r.is_trained)) == ""


def test_times_name_their_clock(row, board):
    seconds = formats.seconds(row.record.training.seconds)
    assert wall_clock(row) == f"{seconds} of wall-clock time for training all 2 seeds"
    solver = next(r for r in board.rows if not r.is_trained)
    assert wall_clock(solver).endswith("s of wall-clock time for the evaluation")
    assert training_speed(solver.record) == ""
    alone = SimpleNamespace(training=SimpleNamespace(replicas=1, steps_per_second=16.24))
    expected = "16.2 steps per second of wall-clock time, summed over the seeds"
    assert training_speed(alone) == expected
    alone.training.replicas = 3
    assert training_speed(alone) == f"{expected}, 3 models trained together"


def test_claimed_times_name_their_clock_and_no_claim_is_lost(row, tmp_path):
    budget = BudgetReport(asked="1m", steps=9, rate=38.0, core_seconds=54.1, wall_seconds=141.2)
    record = row.record.model_copy(update={"budget": budget})
    claimed = claims(record, Objects(tmp_path), [])
    words = claims_in_words(claimed)
    assert len(words) == len(claimed)
    assert words["CPU time of training, each seed"] == "54.1 s"
    speed = words["speed before training, which set the steps"]
    assert speed == "38 steps per second of CPU or GPU time"
    assert any("wall clock, all seeds" in name for name in words)
