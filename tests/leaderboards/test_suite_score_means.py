"""The means of a suite: which boards count, which means are compared, and the ranks."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from iclbench import Suite, run
from iclbench.display.suites import overall_table, suite_parts
from iclbench.display.terminal import print_parts
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.ranking import Rank
from iclbench.leaderboards.scale import Score
from iclbench.leaderboards.site.suites import suite_view
from iclbench.leaderboards.suite_means import mean_score, suite_ranks
from iclbench.leaderboards.suite_score import SuiteRow, _compared, _order, score_suite
from iclbench.runs.suites import records_by_board

SUITE = Suite(
    name="tiny",
    version=1,
    summary="two boards",
    defaults={"eval_prompts": 32},
    board=(
        {"name": "regression", "task": "least-squares", "chance": "zero",
         "task_args": {"dim": 2, "examples": 4}},
        {"name": "classes", "task": "categorical", "chance": "class-frequency",
         "task_args": {"classes": 6, "dim": 2}},
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Solvers on both boards, without the floor of the second, and a trained model on both."""
    out, made = tmp_path_factory.mktemp("suite"), []
    regression, classes = SUITE.boards
    for board, models in (
        (regression, ("zero", "averaging", "transformer")),
        (classes, ("class-frequency", "nearest-class-mean", "kernel-regression", "transformer")),
    ):
        for model in models:
            request = board.request(model, recipe="smoke", seeds=2)
            made.append(run(out=out, **request.model_dump()))
    return [without_floor(r) if r.spec.task == "categorical" else r for r in made]


def without_floor(record):
    floor = record.main.floor.model_copy(update={"metrics": {}, "values": {}})
    main = record.main.model_copy(update={"floor": floor})
    return record.model_copy(update={"evaluations": {"main": main}})


def scored(records):
    return score_suite(SUITE, records_by_board(SUITE, records))


def test_a_board_whose_reference_is_its_best_row_is_in_no_mean(records, capsys):
    table = scored(records)
    assert table.scales["classes"].is_relative
    assert table.counted == ("regression",)
    (trained,) = [entry for entry in table.entries if entry.origin == "trained"]
    assert set(trained.scores) == {"regression", "classes"}
    assert trained.scores["classes"] is not None
    assert trained.mean == trained.scores["regression"].clipped
    # A further row moves the scores of that board alone.
    without = scored([r for r in records if r.spec.model != "nearest-class-mean"])
    (fewer,) = [entry for entry in without.entries if entry.origin == "trained"]
    assert fewer.mean == trained.mean
    print_parts(suite_parts(table))
    text = capsys.readouterr().out
    assert "not in the mean, since 1 is the best row: classes" in text
    assert " · not in the mean\n" in text
    row = next(row for row in overall_table(table).rows if row["origin"] == "trained")
    assert (row["boards"], row["classes"].value) == ("1/1", trained.scores["classes"].value)


def test_the_page_shows_such_a_board_last_and_marked(records):
    view = suite_view(scored(records), Descriptions(pytest.fail))
    assert [(c["title"], c["counts"]) for c in view["columns"]] == [
        ("Least squares", True), ("Anchors", False)
    ]  # fmt: skip
    first = view["tables"][0]["rows"][0]
    assert first["boards"] == "1/1"
    assert [cell["counts"] for cell in first["cells"]] == [True, False]


def test_a_board_counts_before_its_floor_is_known_and_where_it_names_a_solver(records):
    assert scored(records[:1]).counted == ("regression", "classes")
    named = SUITE.model_copy(
        update={"board": (SUITE.board[0], {**SUITE.board[1], "reference": "nearest-class-mean"})}
    )
    rows = [r for r in records if r.spec.model != "nearest-class-mean"]
    table = score_suite(named, records_by_board(named, rows))
    # The named solver has no record: the score by the best row is in no mean.
    assert table.counted == ("regression", "classes")
    (trained,) = [entry for entry in table.entries if entry.origin == "trained"]
    assert trained.counted == ("regression",)
    full = score_suite(named, records_by_board(named, records))
    (trained,) = [entry for entry in full.entries if entry.origin == "trained"]
    assert trained.counted == ("regression", "classes")


def entry(label, track="1m", **scores):
    """An entry with these means and their intervals' half widths by board."""
    spec = SimpleNamespace(origin="trained", init=None, model=label, seeds=[0, 1])
    record = SimpleNamespace(
        spec=spec, seeds=[SimpleNamespace(diverged_at=None)] * 2, track=track, budget=None
    )
    known = {n: Score(mean, mean - half, mean + half) for n, (mean, half) in scores.items()}
    first = next(iter(known.values()))
    records = dict.fromkeys(known, record)
    return SuiteRow(label, "trained", track, records, known, tuple(known), first)


def test_models_with_the_same_boards_are_compared_and_ranked_by_their_intervals():
    high = entry("high", a=(0.8, 0.05), b=(0.8, 0.05))
    wide = entry("wide", a=(0.7, 0.2), b=(0.7, 0.2))
    more = entry("more", a=(0.4, 0.05), b=(0.4, 0.05), c=(1.0, 0.0))
    fewer = entry("fewer", a=(0.9, 0.01))
    rows = {row.label: row for row in _compared([fewer, more, wide, high])}
    assert [rows[name].is_compared for name in ("high", "wide", "more", "fewer")] == [
        True, True, True, False
    ]  # fmt: skip
    # The mean is over the boards of all three; the third adds nothing to it.
    assert rows["more"].mean.value == pytest.approx(0.4)
    assert rows["more"].counted == ("a", "b")
    in_order = sorted(rows.values(), key=_order)
    assert [row.label for row in in_order] == ["high", "wide", "more", "fewer"]
    assert rows["high"].rank == Rank(1, 2)
    assert rows["wide"].rank == Rank(1, 2)
    assert rows["more"].rank == Rank(3, 3)
    assert rows["fewer"].rank is None


def test_a_doubtful_entry_has_no_rank():
    pair = [entry(name, a=(0.5, 0.1)) for name in ("x", "y")]
    assert _compared(pair[:1])[0].rank is None
    opened = _compared([replace(row, track="open") for row in pair])
    assert [(row.is_compared, row.rank) for row in opened] == [(True, None)] * 2
    one = entry("z", a=(0.5, 0.1))
    one.records["a"].seeds = [1]
    assert {row.label: row.rank for row in _compared([*pair, one])} == {
        "x": Rank(1, 2), "y": Rank(1, 2), "z": None
    }  # fmt: skip
    over = entry("z", a=(0.9, 0.01))
    over.records["a"].budget = SimpleNamespace(core_seconds=121.0, device_seconds=None)
    assert {row.label: row.rank for row in _compared([*pair, over])} == {
        "x": Rank(1, 2), "y": Rank(1, 2), "z": None
    }  # fmt: skip
    chosen = entry("z", a=(0.9, 0.01))
    chosen.records["a"].spec.seeds = [100, 101]
    assert {row.label: row.rank for row in _compared([*pair, chosen])} == {
        "x": Rank(1, 2), "y": Rank(1, 2), "z": None
    }  # fmt: skip


def test_without_an_interval_a_mean_may_have_any_rank():
    sure = entry("sure", a=(0.9, 0.01))
    unsure = entry("unsure", a=(0.1, 0.0))
    unsure.scores["a"] = Score(0.1, None, None)
    ranks = {row.label: row.rank for row in _compared([sure, unsure])}
    assert ranks == {"sure": Rank(1, 2), "unsure": Rank(1, 2)}


def test_intervals_of_means_are_lengthened_for_as_many_as_are_ranked():
    first, second = Score(0.5, 0.4, 0.6), Score(0.72, 0.62, 0.82)
    # Apart at 95%, but not at the level of Bonferroni for two.
    assert suite_ranks([[first], [second]]) == [Rank(1, 2)] * 2


def test_means_at_0_without_any_width_share_their_ranks():
    zero = Score(0.0, 0.0, 0.0)
    assert suite_ranks([[zero]] * 3) == [Rank(1, 3)] * 3


def test_seeds_that_agree_by_chance_are_not_taken_at_their_word():
    """Where most models' seeds differ, one whose few seeds agree is as uncertain as the others."""
    differing = [[Score(0.5, 0.2, 0.8)], [Score(0.5, 0.1, 0.9)]]
    agreeing = [Score(0.65, 0.64, 0.66)], [Score(0.35, 0.34, 0.36)]
    assert suite_ranks([*differing, *agreeing]) == [Rank(1, 4)] * 4
    assert suite_ranks(list(agreeing)) == [Rank(1, 1), Rank(2, 2)]
    unknown = [[Score(0.9, None, None)]]
    assert suite_ranks([*agreeing, *unknown]) == [Rank(1, 2), Rank(2, 3), Rank(1, 3)]


def test_a_longer_interval_on_a_board_shortens_none_of_a_mean():
    """An interval longer than the scale is cut, which may be less than it was before."""
    first = [Score(0.1, -0.39, 0.59), Score(0.6, 0.5, 0.7)]
    typical = [[Score(0.1, -0.45, 0.65), Score(0.3, 0.2, 0.4)]] * 2
    sure = [Score(0.1, 0.05, 0.15), Score(0.5, 0.45, 0.55)]
    longer = [typical[0][0], first[1]]
    assert mean_score(longer).low > mean_score(first).low
    assert suite_ranks([first, *typical, sure]) == [Rank(1, 4)] * 4
