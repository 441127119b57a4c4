"""Groups: the trained rows of a track are ranked among themselves, and chance is a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iclbench import leaderboard, run
from iclbench.display.boards import board_table
from iclbench.leaderboards import groups, held_out
from iclbench.leaderboards.formats import rank, seeds
from iclbench.leaderboards.groups import Measured, _graded_for_all, by_training
from iclbench.leaderboards.pages import task_page
from iclbench.leaderboards.paired import difference
from iclbench.leaderboards.rank_legend import rank_legend, undecided
from iclbench.leaderboards.representative import weakness


def test_trained_rows_come_first_and_the_others_have_no_rank(board):
    assert [row.origin for row in board.rows] == [
        "trained", "trained", "solver", "constructed", "solver"]  # fmt: skip
    for group in (board.rows[:2], board.rows[2:]):
        scores = [row.score for row in group]
        assert scores == sorted(scores, reverse=True)
    assert {str(row.rank) for row in board.rows[:2]} <= {"1–2", "1", "2"}
    assert [(row.rank, row.unranked) for row in board.rows[2:]] == [(None, "reference")] * 3


def test_trained_rows_are_in_the_order_of_what_is_tested(board, monkeypatch):
    first, second = (row.record for row in board.rows if row.is_trained)
    digits = {first.id: [[9.0, 4.0]], second.id: [[6.0, 6.0]]}

    def measured(path, record, floors):
        values = np.array(digits[record.id])
        return Measured(values, np.minimum(values, 5.0), values)

    monkeypatch.setattr(groups, "_measured", measured)
    rows = groups.rows_of({r.id: Path(f"{r.id}.json") for r in (first, second)}, [first, second])
    assert [row.record.id for row in rows] == [second.id, first.id]


def test_rows_are_compared_on_the_prompts_that_were_graded_for_all():
    nan = np.nan
    parts = [np.array([[1.0, nan, 3.0]]), np.array([[4.0, 5.0, nan]])]
    first, second = _graded_for_all([Measured(values, values) for values in parts])
    assert (first.values.tolist(), second.ranked.tolist()) == ([[1.0]], [[4.0]])


def test_tracks_are_ranked_apart(changed):
    def with_track(record):
        track = "10m" if record.spec.model_args.get("layers") == 2 else None
        trained = record.spec.origin == "trained"
        return record.model_copy(update={"track": track}) if trained else record

    board = changed(with_track)
    # A single row of a track is not compared with any: a rank would say that it is the best.
    assert [(row.track, rank(row)) for row in board.rows[:2]] == [("10m", "alone"), ("", "alone")]
    assert [row.unranked for row in board.rows[:2]] == ["alone", "alone"]
    assert board.has_tracks
    assert board.undecided == []
    # Nobody stands above the first row of a group.
    assert [row.above is None for row in board.rows] == [True, True, True, False, False]


def test_a_single_trained_seed_is_shown_and_not_ranked(tmp_path):
    spec = {"task": "least-squares", "recipe": "smoke", "eval_prompts": 8, "out": tmp_path}
    run(model="baseconv", **spec, seeds=1)
    run(model="baseconv", **spec, seeds=2)
    run(model="zero", **spec)
    (board,) = leaderboard(tmp_path)
    rows = {(row.record.spec.model, row.seeds): row for row in board.rows}
    assert rows["baseconv", 1].unranked == "one seed"
    assert [rank(row) for row in (rows["baseconv", 1], rows["baseconv", 2], rows["zero", 0])] == [
        "one seed", "alone", ""]  # fmt: skip
    # Other rows of the track have more seeds.
    assert [seeds(row) for row in board.rows if row.is_trained] in (
        ["1 (fewer)", "2"], ["2", "1 (fewer)"])  # fmt: skip


def test_a_training_from_given_weights_is_shown_and_not_ranked(tmp_path):
    spec = {"task": "gradient", "recipe": "smoke", "eval_prompts": 8, "seeds": 2, "out": tmp_path}
    run(model="baseconv", **spec)
    run(model="baseconv", **spec, init="gradient", recipe_args={"steps": 1, "learning_rate": 1e-12})
    (board,) = leaderboard(tmp_path)
    reasons = {row.record.spec.init: (rank(row), row.unranked) for row in board.rows}
    assert reasons == {None: ("alone",) * 2, "gradient": ("given weights",) * 2}


def test_a_model_that_ignores_the_examples_is_chance(board):
    rows = {row.label: row for row in board.rows}
    assert rows["zero"].chance == "chance"
    assert rows["least-squares-qr"].chance == ""
    # Two seeds of 20 steps learn nothing that 64 prompts could show.
    assert rows["baseconv layers=1"].chance == "perhaps at chance"


@pytest.mark.parametrize(
    ("trained", "said"),
    [
        # Seeds that all beat chance and differ much: no test of three tells them from it.
        ([2.6, 2.7, 0.1], "perhaps at chance"),
        ([0.001, -0.002, 0.001], "at chance"),
        ([2.6, 2.7, 2.5], ""),
        ([-2.6, -2.7, -2.5], "worse than chance"),
        ([2.6, np.nan, 2.5], "worse than chance"),
        ([2.6, -np.inf, 2.5], "worse than chance"),
    ],
)
def test_a_row_is_at_chance_only_where_it_surely_is_near(board, monkeypatch, trained, said):
    row = next(row for row in board.rows if row.is_trained)
    chance = next(row for row in board.rows if row.chance == "chance")
    ranked = np.array(trained)[:, None] + np.zeros(64)
    assert groups._against_chance(row.record, ranked, np.zeros((1, 64))) == said
    assert groups._against_chance(chance.record, ranked, np.zeros((1, 64))) == "chance"


def test_a_row_without_an_interval_is_not_surely_at_chance(board):
    row = next(row for row in board.rows if row.is_trained)
    for ranked in (np.zeros((2, 1)), np.full((1, 8), 1e200) * [[1, -1] * 4]):
        chance = np.zeros((1, ranked.shape[1]))
        assert groups._against_chance(row.record, ranked, chance) == "perhaps at chance"


def test_chance_is_the_best_of_its_rows(changed):
    board = changed(
        lambda record: record.model_copy(
            update={"chance": record.spec.model in {"zero", "least-squares-qr"}}
        )
    )
    assert {row.chance for row in board.rows if not row.record.chance} == {"worse than chance"}


def test_without_a_row_of_chance_nothing_is_at_chance(changed):
    board = changed(lambda record: record.model_copy(update={"chance": False}))
    assert {row.chance for row in board.rows} == {""}


@pytest.mark.parametrize("kind", ["bayes", "bound", "none"])
def test_only_the_attainable_error_can_be_reached(changed, board, kind):
    def with_kind(record):
        floor = record.main.floor.model_copy(update={"kind": kind})
        main = record.main.model_copy(update={"floor": floor})
        return record.model_copy(update={"evaluations": {"main": main}})

    rows = changed(with_kind).rows
    assert not any(row.at_floor for row in rows)
    # Digits close to the attainable count as those; a target may be passed.
    assert all((row.ranked == row.digits).all() for row in rows)
    assert any((row.ranked < row.digits).any() for row in board.rows)


def test_rows_of_other_code_are_stale(changed, board):
    def with_other_code(record):
        plugins = [
            p.model_copy(update={"source": "0" * 64}) if p.name == "baseconv" else p
            for p in record.plugins
        ]
        return record.model_copy(update={"plugins": plugins})

    assert not any(row.stale for row in board.rows)
    stale = {row.label: row.stale for row in changed(with_other_code).rows}
    assert stale["zero"] == ()
    assert stale["baseconv layers=1"] == ("baseconv",)


def test_a_track_in_which_nothing_differs_says_so(board, monkeypatch):
    """Rows with the same values have one range of ranks, that of all rows."""
    values = np.array([[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]])
    monkeypatch.setattr(groups, "_measured", lambda *_: Measured(values, values, values))
    paths = {row.record.id: row.record.path for row in board.rows}
    alike = replace(board, rows=groups.rows_of(paths, board.records))
    assert [str(row.rank) for row in alike.rows[:2]] == ["1–2", "1–2"]
    assert alike.undecided == [""]
    expected = undecided([""])
    assert expected.startswith("With open budgets, no two ranked rows differ significantly")
    assert expected in task_page("least-squares", [alike])
    assert board_table(alike).notes == (expected,)


def test_the_track_with_the_most_training_comes_first():
    tracks = ["10m", "", "1m", "paper", "gpu-1h", "2h", "90s"]
    assert sorted(tracks, key=by_training) == ["gpu-1h", "paper", "2h", "10m", "90s", "1m", ""]


def with_seeds(record, seeds):
    spec = record.spec.model_copy(update={"seeds": seeds})
    return record.model_copy(update={"spec": spec})


@pytest.mark.parametrize(
    ("chosen", "unranked"), [((8, 12), "chosen seeds"), ((1, 2), "chosen seeds"), ((1, 0), "")]
)
def test_chosen_seeds_have_no_rank(board, chosen, unranked):
    """They may be the best of many, and every other check holds."""
    record = with_seeds(next(row.record for row in board.rows if row.is_trained), chosen)
    assert groups._unranked(record, None, False) == unranked
    assert weakness(record) == bool(unranked)


@pytest.mark.parametrize("word", [
    groups.ALONE, groups.CHOSEN, groups.GIVEN, held_out.FAILING, groups.SINGLE, held_out.PENDING,
])  # fmt: skip
def test_every_word_in_place_of_a_rank_is_explained(board, word):
    row = replace(next(row for row in board.rows if row.is_trained), rank=None, unranked=word)
    assert word in dict(rank_legend([row]))


def test_a_row_without_the_held_out_evaluation_that_others_have_has_no_rank(board):
    record = next(row.record for row in board.rows if row.is_trained)
    solver = next(row.record for row in board.rows if not row.is_trained)
    assert groups._unranked(record, None, True) == "not held out"
    assert groups._unranked(record, None, False) == ""
    assert groups._unranked(solver, None, True) == "reference"


def test_a_row_that_may_be_far_below_chance_is_not_surely_at_chance(board):
    row = next(row for row in board.rows if row.is_trained)
    ranked = np.array([-0.34, -0.23, -0.12])[:, None] + np.zeros(64)
    paired = difference(ranked, np.zeros((1, 64)), in_digits=True)
    assert paired.low < -0.4
    assert 0 < paired.high < 0.05
    assert groups._against_chance(row.record, ranked, np.zeros((1, 64))) == "perhaps at chance"


def test_a_training_far_over_its_budget_is_not_ranked(tmp_path):
    """It would rank with the advantage of a longer track."""
    task = {"task": "least-squares", "budget": "1s", "eval_prompts": 8, "seeds": 2}
    record = run(model="lsa", **task, out=tmp_path)
    for seconds, reason in ((0.5, ""), (1.9, ""), (2.1, "over budget")):
        budget = record.budget.model_copy(update={"core_seconds": seconds})
        taken = record.model_copy(update={"budget": budget})
        assert groups._unranked(taken, None, is_pending=False) == reason


def test_a_row_of_which_every_seed_diverged_is_not_ranked(tmp_path):
    """Its scores may be those of the initial weights."""
    task = {"task": "least-squares", "eval_prompts": 8, "recipe": "smoke", "seeds": 3}
    record = run(model="lsa", **task, out=tmp_path)
    for ends, reason in (((None, 3, None), ""), ((0, 3, 5), "diverged")):
        seeds = [
            seed.model_copy(update={"diverged_at": end})
            for seed, end in zip(record.seeds, ends, strict=True)
        ]
        assert groups._unranked(record.model_copy(update={"seeds": seeds}), None, False) == reason
