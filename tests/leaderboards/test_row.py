"""Row: digits, the floor, the precision profile, and facts that every renderer shows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iclbench.api.costs import BudgetReport
from iclbench.api.digits import digits
from iclbench.api.ranking import Ranking
from iclbench.leaderboards.bounds import bounds_of
from iclbench.leaderboards.figures.axes import shown_name, shown_score
from iclbench.leaderboards.floor import floor_label
from iclbench.leaderboards.formats import notes
from iclbench.leaderboards.note_legend import note_legend
from iclbench.leaderboards.row import profile, worst
from iclbench.runs.statistics import summarize


@pytest.fixture
def rows(board):
    return board.rows


def test_missing_digits_are_counted_from_the_floor(rows):
    for row in rows:
        assert row.floor_score == row.record.floor["squared_error"].digits.mean
        assert row.missing_digits == pytest.approx(max(0, row.floor_score - row.score))


@pytest.mark.parametrize(
    ("track", "seconds", "used", "note"),
    [
        ("1m", 117.0, 1.95, "used 195% of its budget"),
        ("1m", 3.6, 0.06, "used 6% of its budget"),
        ("1m", 66.0, 1.1, ""),
        ("gpu-1m", 117.0, 0.8, ""),  # the device's time
        ("paper", 66.0, None, ""),
        (None, 66.0, None, ""),
    ],
)
def test_a_row_that_used_much_more_or_less_than_its_budget_says_it(
    rows, track, seconds, used, note
):
    record = next(row for row in rows if row.is_trained).record
    cost = BudgetReport(steps=100, core_seconds=seconds, wall_seconds=seconds, device_seconds=48.0)
    changed = replace(rows[0], record=record.model_copy(update={"track": track, "budget": cost}))
    assert changed.used == (None if used is None else pytest.approx(used))
    assert note in notes(replace(changed, chance=""))


@pytest.mark.parametrize(
    ("lost", "note"), [(0, ""), (1, ""), (3, "8% lost"), (40, "100% lost")], ids=str
)
def test_a_row_says_how_many_answers_are_not_finite_or_beyond_the_limit(rows, lost, note):
    values = np.linspace(-1.0, 5.0, 40)
    values[:lost] = -3.2
    row = replace(rows[0], digits=values.reshape(1, 40))
    assert note in notes(row)
    assert ("lost" in notes(row)) == bool(note)
    words = dict(note_legend([row]))
    assert ("n% lost" in words) == bool(note)


def test_lost_answers_have_several_limits_and_equal_errors_are_not_lost(rows):
    limits = np.repeat([[-3.2, -3.25, -3.1, -3.0]], 3, axis=0)
    assert replace(rows[0], digits=limits).lost == 1.0
    flipped = np.array([[-0.301, -0.301, -0.301, 2.0, 3.0]])
    assert replace(rows[0], digits=flipped).lost == 0.0


def test_the_profile_counts_values_by_digits():
    values = np.array([[1.0, 1e-3, 2e-3, 0.0], [np.nan, np.inf, 1e-16, 5.0]])
    solved = profile(digits(values, "absolute"))
    assert len(solved) == 17
    assert [solved[k] for k in (0, 2, 3, 16)] == [5 / 8, 4 / 8, 3 / 8, 2 / 8]


def test_the_solver_alone_is_at_the_floor(rows):
    assert {row.label for row in rows if row.at_floor} == {"least-squares-qr"}
    # What a language model answered is as recorded: nobody asks it again.
    solver = next(row for row in rows if row.at_floor)
    spec = solver.record.spec.model_copy(update={"origin": "asked"})
    asked = replace(solver, record=solver.record.model_copy(update={"spec": spec}))
    assert not asked.at_floor


def test_a_row_holds_what_its_record_says(rows):
    for row in rows:
        record = row.record
        statistics = record.metrics["squared_error"]
        assert row.score == statistics.digits.mean
        assert row.score == pytest.approx(row.digits.mean())
        assert row.bounds[:3] == (statistics.digits.low, statistics.digits.high,
                                  statistics.digits.interval)  # fmt: skip
        assert row.seed_scores == tuple(s["squared_error"].digits.mean for s in record.main.seeds)
        assert row.worst == statistics.q99
        assert row.ranked.shape == (max(row.seeds, 1), 64)
        assert row.file.endswith(f"{record.id}.json")
    trained = [row for row in rows if row.is_trained]
    assert [(row.seeds, row.steps, row.batch) for row in trained] == [(2, 20, 16)] * 2
    assert all(row.seconds == row.record.training.seconds for row in trained)
    assert not any(row.is_tuned for row in trained)
    constructed = next(row for row in rows if row.origin == "constructed")
    assert constructed.construction == "gd-causal"
    assert (constructed.seeds, constructed.steps) == (0, None)
    assert constructed.seconds == constructed.record.main.seconds


def test_the_row_above_is_compared_on_the_same_prompts(rows):
    for above, row in ((rows[0], rows[1]), (rows[2], rows[3]), (rows[3], rows[4])):
        assert row.above.mean == pytest.approx(row.ranked.mean() - above.ranked.mean())
        assert row.above.low <= row.above.mean <= row.above.high
    assert rows[0].above is rows[2].above is None


def test_where_the_mean_ranks_it_has_the_bounds():
    ranking = Ranking(metric="accuracy", better="higher", statistic="mean")
    statistics = summarize(np.linspace(0, 1, 101)[None])
    assert bounds_of(statistics, ranking)[:2] == (statistics.low, statistics.high)
    assert worst(statistics, ranking) == pytest.approx(0.01)
    assert shown_score(statistics, ranking) == statistics.mean
    assert shown_name("accuracy", statistics, ranking) == "mean accuracy"


def test_a_range_of_digits_over_seeds_is_no_interval():
    ranking = Ranking(metric="error", better="lower", statistic="mean digits")
    apart = summarize(10.0 ** -np.repeat([[2.0], [12.0]], 20, axis=1), "absolute")
    bounds = bounds_of(apart, ranking)
    assert (bounds.kind, bounds.reliable) == ("range over seeds", False)


def test_figures_show_digits_of_errors_where_digits_rank():
    ranking = Ranking(metric="squared_error", better="lower", statistic="mean digits")
    errors, fractions = summarize(np.full((1, 4), 1e-6), "squared"), summarize(np.ones((1, 4)))
    assert shown_score(errors, ranking) == pytest.approx(3)
    assert shown_name("squared_error", errors, ranking) == "digits of squared_error"
    assert shown_score(fractions, ranking) == 1
    assert worst(errors, ranking) == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("exact", "attainable", "attainable"),
        ("bayes", "Bayes predictor", "Bayes"),
        ("bound", "bound", "bound"),
        ("bound", "true ending", "bound: true ending"),
        ("none", "exact gradient", "target: exact gradient"),
    ],
)
def test_the_floor_is_named_by_its_kind(rows, kind, name, label):
    record = rows[0].record
    floor = record.main.floor.model_copy(update={"kind": kind, "name": name})
    main = record.main.model_copy(update={"floor": floor})
    assert floor_label(record.model_copy(update={"evaluations": {"main": main}})) == label
