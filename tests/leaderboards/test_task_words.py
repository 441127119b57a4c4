"""The texts of a task's page, and the scales of its table, on tasks with and without a floor."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np
import pytest

from iclbench import run
from iclbench.leaderboards.board import leaderboard
from iclbench.leaderboards.descriptions import Descriptions
from iclbench.leaderboards.formats import digits_of
from iclbench.leaderboards.paired import SIGNIFICANCE
from iclbench.leaderboards.ranking import ranks
from iclbench.leaderboards.site.dotplot import axis_of, references
from iclbench.leaderboards.site.magnitudes import spans_magnitudes
from iclbench.leaderboards.site.plots import spans_lines
from iclbench.leaderboards.site.task import task
from iclbench.leaderboards.site.task_table import table_rows
from iclbench.leaderboards.site.task_words import (
    evaluation_titles,
    floor_in_words,
    inputs_in_words,
    measure_in_words,
    ranks_in_words,
    score_in_words,
    setting_in_words,
)

SMALL = {"task": "gradient", "task_args": {"dim": 2, "examples": 8, "iterates": 300, "noise": 0.1},
         "eval_prompts": 32}  # fmt: skip


@pytest.fixture(scope="module")
def about():
    return Descriptions(print)


@pytest.fixture(scope="module")
def gradient(tmp_path_factory):
    """The board of a task whose reference is a target: errors of 1e-8 and of 1."""
    out = tmp_path_factory.mktemp("gradient")
    for model in ("exact-gradient", "zero"):
        run(model=model, **SMALL, out=out)
    (board,) = leaderboard(out)
    return board


def test_a_target_is_no_floor(gradient, about):
    text = floor_in_words("gradient", [gradient], about)
    assert text.startswith("There is no floor. The reference is a target that models can pass: ")
    assert text.lower().count("no floor") == 1
    assert "exact gradient, T steps with the gradient" in text
    assert "_" not in text
    (section,) = task("gradient", [gradient], about)["sections"]
    assert section["beside"] == "target"
    assert {mark.kind for mark in references(gradient)} == {"target", "solver", "chance"}


def test_a_mean_error_that_other_pages_show_in_digits_says_so(gradient, boards, about):
    assert "show the digits of this mean" in score_in_words(gradient, about.task("gradient"))
    ranked_by_digits = next(board for board in boards if board.has_digits)
    assert "this mean" not in score_in_words(ranked_by_digits, about.task(ranked_by_digits.task))


def test_other_floors_are_said_once(boards, about):
    for board in boards:
        text = floor_in_words(board.task, [board], about)
        assert text.startswith("The floor is ")
        (section,) = task(board.task, [board], about)["sections"]
        assert section["beside"] == "floor"


def test_a_board_without_any_floor_has_no_column_for_it(gradient, about):
    rows = tuple(_without_floor(row) for row in gradient.rows)
    bare = type(gradient)(rows, None)
    (section,) = task("gradient", [bare], about)["sections"]
    assert section["beside"] == ""
    text = floor_in_words("gradient", [bare], about)
    solver = about.model("exact-gradient").title
    assert text.startswith(f"There is no floor; the best solver, {solver}, is the reference")
    trained = type(gradient)(tuple(row for row in rows if row.record.chance), None)
    text = floor_in_words("gradient", [trained], about)
    assert text.startswith("There is no floor; the best row is the reference")


def _without_floor(row):
    return replace(row, floor_score=None)


@pytest.fixture(scope="module")
def boards(leaderboards):
    return leaderboard(leaderboards / "records")


def test_the_score_s_heading_says_what_is_averaged(boards, gradient, about):
    heads = {b.task: task(b.task, [b], about)["sections"][0]["score"] for b in [*boards, gradient]}
    assert heads["least-squares"] == "digits"
    assert heads["categorical"] == "mean negative log-likelihood in nats"
    assert heads["gradient"] == "mean squared error of the last iterate"


def test_titles_tell_boards_of_one_setting_apart(gradient, about):
    (alone,) = evaluation_titles([gradient], about)
    assert "prompts" not in alone
    main = gradient.evaluation.model_copy(update={"prompts": 512})
    record = gradient.rows[0].record.model_copy(update={"evaluations": {"main": main}})
    fewer = type(gradient)((replace(gradient.rows[0], record=record),), None)
    titles = evaluation_titles([gradient, fewer], about)
    assert titles == [f"{alone}, {gradient.evaluation.prompts:,} prompts", f"{alone}, 512 prompts"]


def test_a_caption_has_the_statistic_and_the_setting_in_words(boards, gradient, about):
    words = {b.task: measure_in_words(b, about.task(b.task)) for b in [*boards, gradient]}
    assert words["least-squares"] == "mean digits of the error"
    assert words["categorical"] == "mean negative log-likelihood in nats"
    setting = setting_in_words(gradient, about.task("gradient"))
    assert setting.startswith("D\u00a0=\u00a02, N\u00a0=\u00a08, ")
    main = gradient.evaluation.model_copy(update={"title": "gradient: real <data>"})
    record = gradient.rows[0].record.model_copy(update={"evaluations": {"main": main}})
    named = type(gradient)((replace(gradient.rows[0], record=record),), None)
    assert setting_in_words(named, about.task("gradient")) == f"real <data>, {setting}"


def test_errors_of_many_magnitudes_have_logarithmic_scales(gradient, about):
    axis = axis_of(gradient, gradient.rows, references(gradient))
    scores = [row.score for row in gradient.rows]
    assert max(scores) > 100 * min(scores) > 0
    assert axis.log
    assert axis.low < min(scores) < max(scores) < axis.high
    # The bar of the table is on the same scale, the better side at the right.
    (section,) = task("gradient", [gradient], about)["sections"]
    for row in section["rows"]:
        dot = float(re.search(r'cx="([\d.]+)"', row["plot"])[1])
        low, high, at = (math.log(v) for v in (axis.low, axis.high, row["row"].score))
        assert dot == pytest.approx(4 + 82 * (high - at) / (high - low), abs=0.06)


def test_errors_beyond_what_an_axis_can_show_do_not_stop_the_page(gradient, about):
    scores = itertools.cycle([1e300, 1e-300, 1e-14, 1e200])
    odd = gradient.rows[0], *(replace(row, score=next(scores)) for row in gradient.rows * 2)
    for rows in (odd, odd[1:3], odd[1:2]):
        board = replace(gradient, rows=rows)
        low, high, log = axis_of(board, rows, [])
        assert 0 < low < high or not log
        assert math.isfinite(low - high)
        assert all("nan" not in row["plot"] for row in table_rows([board], 9))


def test_scores_of_one_magnitude_and_digits_have_linear_scales(boards):
    for board in boards:
        scored = [row for row in board.rows if row.score is not None]
        assert not axis_of(board, scored, references(board)).log


@pytest.mark.parametrize(
    ("values", "expected"),
    [([1.0, 101.0], True), ([1.0, 99.0], False), ([0.0, 1e9], False), ([None, math.nan], False)],
)
def test_magnitudes_need_positive_values(values, expected):
    assert spans_magnitudes(values) is expected


def test_curves_leave_out_zeros_and_what_no_axis_can_show():
    def of(*values):
        return spans_lines([{"y": [values[0], None]}, {"y": values[1:]}])

    assert of(1.0, 31.0)
    assert of(1.0, 0.0, 31.0)
    assert not of(1.0, 30.0)
    assert not of(1.0, -1.0, 31.0)
    assert not of(1.0, 2.0, math.inf, 1e300)


def test_digits_are_called_digits_of_the_error():
    assert digits_of("squared error") == "digits of the error"
    assert digits_of("error of the weights") == "digits of the error of the weights"


def test_a_wide_rank_is_explained(boards, gradient):
    text = ranks_in_words(boards)
    for words in ("paired test", f"{SIGNIFICANCE:g}", "Holm", "few seeds"):
        assert words in text
    assert ranks_in_words([gradient]) == ""


def test_ranks_that_overlap_may_differ():
    """So no page may say that overlapping ranks do not differ."""
    noise = np.random.default_rng(0).normal(size=(1, 400))
    # The middle row is too noisy to differ from either of the others.
    rows = [noise * 0.01, noise[::-1, ::-1] * 30.0, noise * 0.01 + 1.0]
    first, middle, last = ranks(rows, "lower", in_digits=True)
    assert (tuple(first), tuple(middle), tuple(last)) == ((1, 2), (1, 3), (2, 3))


def test_models_that_read_no_tokens_are_named(about, tmp_path):
    small = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "recipe": "smoke",
             "eval_prompts": 8, "out": tmp_path}  # fmt: skip
    run(model="transformer", **small)
    run(model="zero", **small)
    assert inputs_in_words(leaderboard(tmp_path), about) == ""
    run(model="lsa", **small)
    text = inputs_in_words(leaderboard(tmp_path), about)
    assert "LSA reads its paper's matrix" in text
    assert text.endswith("The others read tokens.")
