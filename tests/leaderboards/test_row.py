"""Row: digits, the floor, the precision profile, and facts that every renderer shows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from iclbench import RecordStore, run
from iclbench.api.record import Ranking
from iclbench.leaderboards.board import boards
from iclbench.leaderboards.row import digits, profile

ERROR = Ranking(metric="squared_error", better="lower", statistic="median")


@pytest.fixture
def rows(board):
    return board.rows


def with_median(record, median, floor):
    """The record with another median and another floor."""
    metric = record.metrics["squared_error"].model_copy(update={"median": median})
    bound = record.floor["squared_error"].model_copy(update={"median": floor})
    main = record.main.model_copy(
        update={
            "metrics": {"squared_error": metric},
            "floor": record.main.floor.model_copy(update={"metrics": {"squared_error": bound}}),
        }
    )
    return record.model_copy(update={"evaluations": {"main": main}})


@pytest.mark.parametrize(
    ("score", "expected"), [(1e-3, 3.0), (10.0, -1.0), (0.0, math.inf), (None, None)]
)
def test_digits_are_those_of_an_error(score, expected):
    assert digits(score, ERROR) == expected


@pytest.mark.parametrize("changes", [{"statistic": "mean"}, {"better": "higher"}])
def test_only_errors_have_digits(changes):
    assert digits(1e-3, ERROR.model_copy(update=changes)) is None


@pytest.mark.parametrize(
    ("median", "floor", "attainable", "missing", "at_floor"),
    [
        (1e-6, 1e-8, 8.0, 2.0, False),
        (2e-8, 1e-8, 8.0, math.log10(2), True),
        (1e-9, 1e-8, 8.0, 0.0, True),
        (0.0, 1e-8, 8.0, 0.0, True),
        (None, 1e-8, 8.0, None, False),
        # A floor without error stands for ε².
        (1e-10, 0.0, -2 * math.log10(np.finfo("float32").eps), pytest.approx(3.85, 0.01), False),
    ],
)
def test_missing_digits_are_counted_from_the_floor(
    tmp_path, median, floor, attainable, missing, at_floor
):
    record = run(model="zero", task="least-squares", eval_prompts=8, out=tmp_path)
    (board,) = boards([with_median(record, median, floor)], RecordStore(tmp_path))
    (row,) = board.rows
    assert row.attainable_digits == pytest.approx(attainable)
    assert row.missing_digits == pytest.approx(missing)
    assert row.at_floor == at_floor


def test_the_profile_counts_values_by_digits():
    values = np.array([[1.0, 1e-3, 2e-3, 0.0], [np.nan, np.inf, 1e-16, 5.0]])
    solved = profile(values)
    assert len(solved) == 17
    assert [solved[k] for k in (0, 2, 3, 16)] == [5 / 8, 4 / 8, 3 / 8, 2 / 8]


def test_rows_at_the_floor_lead_the_precision_page(rows):
    assert rows[0].record.spec.model == "least-squares-qr"
    assert [row.at_floor for row in rows] == [True, False, False, False, False]
    assert str(rows[0].precision_rank) == "1"


def test_a_row_holds_what_its_record_says(rows):
    for row in rows:
        record = row.record
        assert row.score == row.statistics.median == record.metrics["squared_error"].median
        assert row.seed_scores == tuple(s["squared_error"].median for s in record.main.seeds)
        assert row.digits == pytest.approx(-math.log10(row.score))
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
        gap = (np.log10(row.values).mean() - np.log10(above.values).mean()).item()
        assert row.above.mean == pytest.approx(gap)
        assert row.above.low <= row.above.mean <= row.above.high
