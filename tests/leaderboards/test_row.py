"""Row: digits, the floor, the precision profile, and facts that every renderer shows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from iclbench import leaderboard, run
from iclbench.api.digits import digits
from iclbench.leaderboards.formats import rank
from iclbench.leaderboards.row import profile


@pytest.fixture
def rows(board):
    return board.rows


def test_missing_digits_are_counted_from_the_floor(rows):
    for row in rows:
        assert row.floor_digits == row.record.floor["squared_error"].digits.mean
        assert row.missing_digits == pytest.approx(max(0, row.floor_digits - row.digits))


def test_the_profile_counts_values_by_digits():
    values = np.array([[1.0, 1e-3, 2e-3, 0.0], [np.nan, np.inf, 1e-16, 5.0]])
    solved = profile(digits(values, "absolute"))
    assert len(solved) == 17
    assert [solved[k] for k in (0, 2, 3, 16)] == [5 / 8, 4 / 8, 3 / 8, 2 / 8]


def test_the_reference_alone_is_at_the_floor(rows):
    assert rows[0].record.spec.model == "least-squares-qr"
    assert [row.at_floor for row in rows] == [True, False, False, False, False]


def test_a_row_holds_what_its_record_says(rows):
    for row in rows:
        record = row.record
        assert row.score == row.statistics.median == record.metrics["squared_error"].median
        assert row.seed_scores == tuple(s.metrics["squared_error"].median for s in record.seeds)
        assert row.digits == record.metrics["squared_error"].digits.mean
        assert row.digits == pytest.approx(digits(row.values, "squared").mean())
        assert row.floor_score == record.floor["squared_error"].median
        assert row.values.shape == (max(row.seeds, 1), 64)
        assert row.file.endswith(f"{record.id}.json")
    trained = [row for row in rows if row.origin == "trained"]
    assert [(row.seeds, row.steps, row.batch) for row in trained] == [(2, 20, 16)] * 2
    assert all(row.seconds == row.record.training.seconds for row in trained)
    constructed = next(row for row in rows if row.origin == "constructed")
    assert constructed.construction == "gd-causal"
    assert (constructed.seeds, constructed.steps) == (0, None)
    assert constructed.seconds == constructed.record.main.seconds


def test_the_row_above_is_compared_on_the_same_prompts(rows):
    assert rows[0].above is None
    for above, row in itertools.pairwise(rows):
        assert row.above.mean == pytest.approx(row.ranked.mean() - above.ranked.mean())
        assert row.above.low <= row.above.mean <= row.above.high


def test_a_single_trained_seed_is_shown_and_not_ranked(tmp_path):
    spec = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 8, "out": tmp_path}
    run(model="baseconv", **spec, seeds=1)
    run(model="baseconv", **spec, seeds=2)
    run(model="zero", **spec)
    (board,) = leaderboard(tmp_path)
    ranks = {(row.record.spec.model, row.seeds): row.rank for row in board.rows}
    assert ranks["baseconv", 1] is None
    # Of two ranked rows, ranks are 1 or 2.
    assert {*ranks["baseconv", 2], *ranks["zero", 0]} == {1, 2}
    assert rank(next(row for row in board.rows if row.rank is None)) == ""
