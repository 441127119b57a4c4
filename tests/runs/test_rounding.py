"""Verifying where rounding moves results far: another machine's values hold, others do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from forging import with_values

from iclbench import RecordStore, run, verify
from iclbench.api.spec import RunSpec
from iclbench.runs.comparison import Check
from iclbench.runs.facts import recompute
from iclbench.runs.measure import measure
from iclbench.runs.models import given_models
from iclbench.runs.plan import resolve
from iclbench.runs.recorded import _Limit, _limits, _within
from iclbench.runs.rounding import FACTOR, measure_rounded, spread
from iclbench.runs.store import read_record

#: Cholesky on a design of condition number 300 loses most digits of float32. Some roundings move a
#: prompt beyond what is tolerated, but none of those below moves one of this evaluation seed.
AMPLIFYING = {
    "model": "least-squares-cholesky",
    "model_args": {"refinements": 0},
    "task": "least-squares",
    "task_args": {"dim": 4, "examples": 8, "condition_number": 300.0},
    "eval_prompts": 64,
    "eval_seed": 3,
}


@pytest.fixture
def amplifying(tmp_path):
    record = run(**AMPLIFYING, out=tmp_path)
    path = RecordStore(tmp_path).path(record.spec)
    plan = recompute(path, record).evaluation_plan
    return path, plan, given_models(plan)


def failing(path):
    return [check.name for check in verify(path) if not check.holds]


def test_rounding_moves_an_amplifying_model_by_more_than_a_part_in_a_thousand(amplifying):
    _, plan, models = amplifying
    device = torch.device("cpu")
    measured = measure(plan, models, device, 1024)
    moves = spread(measured, measure_rounded(plan, models, device))["squared_error"] / FACTOR
    assert np.median(moves / measured.values["squared_error"]) > 1e-2


def test_values_that_another_rounding_gives_hold(amplifying):
    path, plan, models = amplifying
    assert failing(path) == []
    # As another machine might have rounded: a draw that verifying does not use.
    other = measure_rounded(plan, models, torch.device("cpu"), seed=1)[0]
    assert failing(with_values(path, other.values)) == []


def test_values_beyond_rounding_do_not_hold(amplifying):
    path, _, _ = amplifying
    record = read_record(path)
    values = RecordStore(path.parent.parent).objects.read_array(record.main.values["squared_error"])
    assert failing(with_values(path, {"squared_error": values / 9.0}))


@pytest.mark.parametrize(
    ("recorded", "measured", "moved", "holds"),
    [
        (1.0, 0.5, [-2.0, -1.0], False),  # rounding only spoils these weights
        (1.0, 0.5, [0.7, 0.4], True),
        (0.51, 0.5, [-2.0, -1.0], True),  # a gain of no account: the draws are few
        (0.1, 0.5, [-2.0, -1.0], True),  # nobody claims worse numbers to win
        (-9.0, 0.5, [0.7, 0.4], False),
    ],
)
def test_a_better_number_needs_draws_that_are_better_too(
    amplifying, recorded, measured, moved, holds
):
    _, plan, _ = amplifying
    limits = _limits(plan, "")
    digits = Check("squared_error digits mean", recorded, measured, holds=False)
    assert _within(digits, moved, limits[digits.name]).holds == holds
    # Of an error, less is better.
    error = Check("squared_error mean", -recorded, -measured, holds=False)
    assert _within(error, [-value for value in moved], limits[error.name]).holds == holds
    # What says nothing of how good a model is may differ in both directions.
    assert _within(digits, moved, _Limit()).holds == (recorded > -9.0)


@pytest.mark.parametrize(("recorded", "holds"), [(4.8, True), (4.5, False)])
def test_however_far_rounding_moves_errors_their_mean_digits_move_little(
    amplifying, recorded, holds
):
    _, plan, _ = amplifying
    check = Check("squared_error mean digits", recorded, 5.0, holds=False)
    limit = _limits(plan, "")[check.name]
    assert _within(check, [1.0, 9.0], limit).holds == holds


@pytest.mark.parametrize(
    ("model", "task", "metric", "recorded", "holds"),
    [
        ("gd-transformer", "categorical", "nll", 11.5, True),
        ("gd-transformer", "categorical", "nll", 0.02, False),
        ("baseconv", "relu-network", "squared_error", 7.0, True),
        ("baseconv", "relu-network", "squared_error", 0.02, False),
    ],
)
def test_a_mean_that_ranks_moves_little_however_far_rounding_moves_it(
    model, task, metric, recorded, holds
):
    """Weights may be so large that one unit in the last place moves an answer from right to wrong.

    Of `gradient`, a mean error ranks, which a few prompts decide.
    """
    plan = resolve(RunSpec(model=model, task=task, recipe="smoke"))
    for statistic in ("mean", "median"):
        check = Check(f"{metric} {statistic}", recorded, 12.0, holds=False)
        limit = _limits(plan, "")[check.name]
        assert _within(check, [0.01, 30.0], limit).holds == holds
