"""Scores of suites: from chance to the reference, board by board, and their mean."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from iclbench import RecordStore, Suite, run
from iclbench.api.random import philox
from iclbench.display.suites import suite_parts
from iclbench.display.table import Cell, Table
from iclbench.display.terminal import print_parts
from iclbench.leaderboards.scale import Scale, Score, suite_scale
from iclbench.leaderboards.suite_means import mean_score
from iclbench.leaderboards.suite_score import score_suite
from iclbench.runs.store import read_record
from iclbench.runs.suites import records_by_board

TRIALS = [{"recipe_args": {"learning_rate": rate}, "score": 1.0} for rate in (1e-3, 1e-2)]
SUITE = Suite(
    name="tiny",
    version=2,
    summary="two boards",
    defaults={"eval_prompts": 64, "chance": "zero"},
    board=(
        {"name": "regression", "task": "least-squares",
         "task_args": {"dim": 2, "examples": 4}},
        {"name": "classes", "task": "categorical", "task_args": {"classes": 6, "dim": 2},
         "chance": "class-frequency", "reference": "nearest-class-mean"},
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The records of both boards by name: solvers, and a trained model with two budgets."""
    out = tmp_path_factory.mktemp("suite")
    regression, classes = SUITE.boards
    for board, models in (
        (regression, ("zero", "least-squares-qr", "averaging")),
        (classes, ("class-frequency", "nearest-class-mean", "kernel-regression")),
    ):
        for model in models:
            run(out=out, **board.request(model).model_dump())
    for steps in (5, 40):
        request = regression.request("baseconv", recipe="smoke", seeds=2,
                                     recipe_args={"steps": steps})  # fmt: skip
        run(out=out, **request.model_dump())
    # Other prompts: not a row of the suite.
    run(out=out, **regression.request("ridge").model_dump() | {"eval_prompts": 32})
    members = records_by_board(SUITE, [read_record(path) for path in RecordStore(out).paths()])
    return {name: {r.spec.model: r for r in group} | {"all": group}
            for name, group in members.items()}  # fmt: skip


def all_of(records):
    return {name: group["all"] for name, group in records.items()}


def test_only_records_of_a_board_s_prompts_count(records):
    assert {r.spec.model for r in records["regression"]["all"]} == {
        "zero", "least-squares-qr", "averaging", "baseconv"
    }  # fmt: skip
    assert len(records["regression"]["all"]) == 5


def test_chance_scores_0_and_the_attainable_error_1(records):
    table = score_suite(SUITE, all_of(records))
    board = records["regression"]
    scale = table.scales["regression"]
    assert scale.reference_name == "attainable"
    assert scale.chance == board["zero"].metrics["squared_error"].digits.mean
    assert scale.reference == board["zero"].floor["squared_error"].digits.mean
    assert scale.score(board["zero"]) == (0.0, 0.0, 0.0), "on these prompts and on others"
    solved = scale.score(board["least-squares-qr"])
    assert solved.value == pytest.approx(1.0, abs=0.1)
    assert solved.low < solved.value < solved.high
    digits = board["averaging"].metrics["squared_error"].digits
    middle = scale.score(board["averaging"])
    length = scale.reference - scale.chance
    assert middle.value == pytest.approx((digits.mean - scale.chance) / length)
    of_level = (digits.high - digits.low) / length
    assert 0.7 * of_level < middle.high - middle.low < 1.5 * of_level
    # Without the values of its prompts, the interval is that of the level.
    middle = replace(scale, by_prompt=None).score(board["averaging"])
    assert middle.low == pytest.approx((digits.low - scale.chance) / length)


def test_where_lower_is_better_the_bounds_change_places(records):
    """A bound is a floor too, here of a mean that should be low."""
    board = records["classes"]
    scale = suite_scale(SUITE.boards[1], board["all"])
    assert scale.reference_name == "bound"
    assert scale.reference < scale.chance
    score = replace(scale, by_prompt=None).score(board["kernel-regression"])
    nll = board["kernel-regression"].metrics["nll"]
    assert score.low == pytest.approx((nll.high - scale.chance) / (scale.reference - scale.chance))
    assert score.low < score.value < score.high


def without_floor(record):
    floor = record.main.floor.model_copy(update={"metrics": {}, "values": {}})
    main = record.main.model_copy(update={"floor": floor})
    return record.model_copy(update={"evaluations": {"main": main}})


def test_without_a_floor_the_named_solver_counts_or_the_best_row(records):
    board = SUITE.boards[1]
    group = [without_floor(record) for record in records["classes"]["all"]]
    by_model = {record.spec.model: record for record in group}
    named = suite_scale(board, group)
    assert named.reference_name == "nearest-class-mean"
    assert named.score(by_model["nearest-class-mean"]).value == 1.0
    best = suite_scale(board.model_copy(update={"reference": None}), group)
    values = {m: r.metrics["nll"].mean for m, r in by_model.items() if m != "class-frequency"}
    assert best.reference == min(values.values())
    assert best.reference_name == f"best row: {min(values, key=values.get)}"


@pytest.mark.parametrize("reference", [None, "a solver without a record"])
def test_a_model_alone_is_not_its_own_reference(records, reference):
    board = SUITE.boards[1].model_copy(update={"reference": reference})
    group = [without_floor(record) for record in records["classes"]["all"]]
    chance = [record for record in group if record.spec.model == board.chance]
    one, other, *_ = [record for record in group if record.spec.model != board.chance]
    alone = suite_scale(board, [*chance, one])
    assert alone.reference is None
    assert alone.score(one) is None
    both = suite_scale(board, [*chance, one, other])
    assert {both.score(one).value, both.score(other).value} >= {1.0}


def test_a_solver_with_other_arguments_is_neither_chance_nor_the_reference(records):
    board = SUITE.boards[1].model_copy(update={"reference": "kernel-regression"})
    group = [without_floor(record) for record in records["classes"]["all"]]

    def worse(model, **args):
        """A record of the solver with other arguments and a worse score, which is read first."""
        record = next(r for r in group if r.spec.model == model)
        spec = record.spec.model_copy(update={"model_args": {**record.spec.model_args, **args}})
        nll = record.metrics["nll"].model_copy(update={"mean": 7.0})
        main = record.main.model_copy(update={"metrics": {"nll": nll}})
        return record.model_copy(update={"spec": spec, "evaluations": {"main": main}})

    others = [worse("class-frequency", smoothing=9.0), worse("kernel-regression", bandwidth=9.0)]
    assert suite_scale(board, [*others, *group]) == suite_scale(board, group)


def test_nothing_is_scored_without_chance_or_against_a_reference_below_it(records, capsys):
    group = [r for r in records["regression"]["all"] if r.spec.model != "zero"]
    table = score_suite(SUITE, {"regression": group})
    assert table.scales["regression"].chance is None
    assert all(entry.mean is None for entry in table.entries)
    print_parts(suite_parts(table))
    assert "unknown" in capsys.readouterr().out
    record = records["regression"]["averaging"]
    assert Scale(3.0, 3.0, "x").score(record) is None
    assert Scale(3.0, 1.0, "x").score(record) is None
    assert Scale(1.0, math.inf, "x").score(record) is None


def test_the_mean_counts_a_board_below_chance_as_chance():
    scores = [Score(0.8, 0.7, 0.9), Score(-4.0, -6.0, 0.1)]
    mean = mean_score(scores)
    assert mean.value == 0.4
    # The second interval is longer than the scale: its bounds, cut at 0 and 1, are added.
    assert (mean.low, mean.high) == pytest.approx((0.4 - 0.1 / 2, 0.4 + 0.1 / 2 + 0.1 / 2))
    assert mean_score([Score(0.8, None, None), *scores]).low is None
    assert mean_score([]) is None


def test_the_mean_counts_a_board_above_its_reference_as_that():
    mean = mean_score([Score(1.4, 1.3, 1.5), Score(0.5, 0.4, 0.6)])
    assert (mean.value, mean.low, mean.high) == pytest.approx((0.75, 0.7, 0.8))


@pytest.mark.parametrize(
    ("truths", "spread"),
    [([0.0] * 10, 0.05), ([1.0] * 10, 0.05), ([0.02] * 10, 0.05), ([0.5] * 10, 0.05),
     ([0.0] * 7 + [0.3] * 3, 0.05), ([-0.1] * 5 + [0.5] * 5, 0.05), ([0.0] * 4, 0.05),
     ([0.0] * 10, 0.24), ([0.2] * 10, 0.3)],
)  # fmt: skip
def test_the_interval_of_a_mean_covers_it_at_chance_and_at_the_reference(truths, spread):
    """Boards at chance would else be surely above it: cut scores are never too low."""
    random = philox("mean of suites", *map(str, truths))
    truth, covered, count = np.clip(truths, 0, 1).mean(), 0, 1000
    for _ in range(count):
        values = truths + spread * random.standard_normal(len(truths))
        half = 1.96 * spread
        mean = mean_score([Score(float(v), float(v) - half, float(v) + half) for v in values])
        covered += mean.low <= truth <= mean.high
    # 2 percent less than 95 are three standard errors of 1,000 draws.
    assert covered >= 0.93 * count


def test_fewer_than_half_of_the_boards_have_no_mean(records):
    more = [{**SUITE.board[0], "name": name} for name in ("a", "b")]
    wider = SUITE.model_copy(update={"board": (*SUITE.board, *more)})
    trained = next(e for e in score_suite(wider, all_of(records)).entries if e.origin == "trained")
    assert list(trained.scores) == ["regression"]
    assert trained.mean is None


def test_boards_without_a_row_are_shown_and_not_imputed(records, capsys):
    table = score_suite(SUITE, all_of(records))
    trained = next(entry for entry in table.entries if entry.origin == "trained")
    assert list(trained.scores) == ["regression"]
    assert trained.mean.value == max(0.0, trained.scores["regression"].value)
    print_parts(suite_parts(table, {("classes", "baseconv"): "unsupported: it answers numbers"}))
    text = capsys.readouterr().out
    assert "suite tiny v2" in text
    assert "baseconv: unsupported: it answers numbers" in text
    assert " 1/2 " in text
    assert "0: zero (" in text


def test_the_state_of_a_layer_stands_beside_the_parameters(records):
    table = score_suite(SUITE, all_of(records))
    overall, others, first, *_ = [p for p in suite_parts(table) if isinstance(p, Table)]
    (trained,) = [e for e in table.entries if e.origin == "trained"]
    size = trained.records["regression"].state_bytes
    for part in (overall, first):
        row = next(row for row in part.rows if row["model"] == trained.label)
        assert row["state"] == Cell(f"{size:,.0f}", size)
    assert {row["origin"] for row in overall.rows} == {"trained"}
    assert "trained" not in {row["origin"] for row in others.rows}
    for part in (others, first):
        assert [r["state"].value for r in part.rows if r["model"] == "zero"] == [None]


def trained_entries(records, *group):
    table = score_suite(SUITE, {"regression": [records["regression"]["zero"], *group]})
    return [entry for entry in table.entries if entry.origin == "trained"]


def test_a_model_s_row_is_chosen_by_validation_and_a_tuned_one_comes_first(records):
    board = records["regression"]["all"]
    first, second = (r for r in board if r.spec.model == "baseconv")
    last = {r.id: sum(c[-1] for c in r.validation_curve.mean) for r in (first, second)}
    better, worse = sorted((first, second), key=lambda r: -last[r.id])

    def chosen(*group):
        (entry,) = trained_entries(records, *group)
        return entry.records["regression"].id, entry.tuned

    assert chosen(worse, better) == (better.id, "untuned")
    tuning = {"sha256": "0" * 64, "document": {"trials": TRIALS}}
    tuned = type(worse).model_validate({**worse.model_dump(mode="json"), "tuning": tuning})
    assert chosen(better, tuned) == (worse.id, "tuned")


def test_a_training_that_lost_a_seed_is_not_chosen(records):
    pair = [r for r in records["regression"]["all"] if r.spec.model == "baseconv"]
    worse, better = sorted(pair, key=lambda r: sum(c[-1] for c in r.validation_curve.mean))
    curve = better.validation_curve
    mean = [curve.mean[0], [*curve.mean[1][:-1], None]]
    lost = better.model_copy(update={"validation_curve": curve.model_copy(update={"mean": mean})})
    (entry,) = trained_entries(records, lost, worse)
    assert entry.records["regression"].id == worse.id


def test_a_training_from_given_weights_is_an_entry_of_its_own(records):
    first, second = (r for r in records["regression"]["all"] if r.spec.model == "baseconv")
    # It comes after the others, whatever its score.
    for chosen, other in ((first, second), (second, first)):
        spec = chosen.spec.model_copy(update={"init": "given.safetensors"})
        given = chosen.model_copy(update={"spec": spec})
        labels = [entry.label for entry in trained_entries(records, given, other)]
        assert labels == ["baseconv", "baseconv init=given"]
        assert [e.label for e in trained_entries(records, given)] == ["baseconv init=given"]


def test_a_value_that_is_not_finite_scores_0_without_an_interval(records):
    record = records["classes"]["kernel-regression"]
    statistics = record.metrics["nll"].model_copy(update={"mean": None, "low": None, "high": None})
    main = record.main.model_copy(update={"metrics": {**record.metrics, "nll": statistics}})
    lost = record.model_copy(update={"evaluations": {"main": main}})
    assert Scale(2.0, 1.0, "bound").score(lost) == Score(0.0, None, None)
