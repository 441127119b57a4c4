"""What a record says of costs follows from its request, or is a claim."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from forging import reseal
from small_runs import TINY

from iclbench import RecordStore, RunSpec, run
from iclbench.api.costs import ValidationCurve
from iclbench.api.scoring import Primary
from iclbench.runs import budget as budgets
from iclbench.runs.cost_facts import (
    _is_no_better,
    compare_costs,
    compare_costs_again,
    cost_claims,
)
from iclbench.runs.plan import resolve
from iclbench.runs.retraining import retrain
from iclbench.runs.training import ReadyModels
from iclbench.runs.verify import verify

BUDGETED = {**TINY, "model": "baseconv", "budget": "1s"}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "measure_rate", lambda trial, seconds: 60.0)
        budgeted = run(**BUDGETED, out=folder)
    by_steps = run(**{**BUDGETED, "budget": None}, out=folder)
    solver = run(**{**BUDGETED, "model": "least-squares-qr"}, out=folder)
    return {"store": RecordStore(folder), "budget": budgeted, "steps": by_steps, "solver": solver}


@pytest.mark.parametrize("name", ["budget", "steps", "solver"])
def test_a_sound_record_is_verified(records, name):
    path = records["store"].path(records[name].spec)
    checks = verify(path)
    assert [check.name for check in checks if not check.holds] == []


def failing(record, **changes):
    """The names of the facts that differ after a change of the record."""
    plan = resolve(RunSpec.from_command(record.command))
    changed = record.model_copy(update=changes)
    return [check.name for check in compare_costs(changed, plan) if not check.holds]


def test_changed_facts_are_noticed(records):
    record = records["budget"]
    assert failing(record) == []
    assert failing(record, track="10m") == ["track"]
    assert failing(record, budget=None)[0] == "budget"
    more = record.budget.model_copy(update={"steps": 61})
    assert "budget steps" in failing(record, budget=more)
    other = record.budget.model_copy(update={"asked": "2s"})
    assert "budget asked" in failing(record, budget=other)
    for contradiction, fact in (
        ({"rate": None}, "budget steps"),
        ({"core_seconds": 36_000.0}, "core time per seed"),
        ({"device_seconds": 1.0}, "time on a GPU"),
        ({"rate": 1e308}, "budget steps"),
        ({"asked": "no budget"}, "budget asked"),
    ):
        claimed = record.budget.model_copy(update=contradiction)
        assert fact in failing(record, budget=claimed)
    negative = record.budget.model_copy(update={"core_seconds": -1.0})
    assert "budget seconds" in failing(record, budget=negative)
    operations = record.operations.model_copy(update={"forward": 1.0})
    assert failing(record, operations=operations)[0] == "operations"
    assert failing(records["steps"], track="paper") == ["track"]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"metric": "weight_error"}, "validation metric"),
        ({"statistic": "mean"}, "validation statistic"),
        ({"seed": 0}, "validation seed"),
        ({"prompts": 65}, "validation prompts"),
        ({"steps": [7, 60]}, "validation at other steps"),
        ({"seconds": [2.0, 1.0]}, "validation in order"),
        ({"seconds": [-2.0, -1.0]}, "validation in order"),
        ({"seconds": [0.0, 1e9]}, "validation seconds"),
        ({"operations": [1.0, 2.0]}, "validation operations"),
        ({"mean": [[1.0, 2.0]]}, "seeds of the validation"),
        ({"share": -1.0}, "validation share"),
    ],
)
def test_a_changed_curve_is_noticed(records, change, fact):
    record = records["budget"]
    per_step = record.operations.training / 60
    curve = record.validation_curve.model_copy(
        update={
            "steps": [20, 60],
            "seconds": [0.0, record.budget.core_seconds],
            "operations": [20 * per_step, 60 * per_step],
            "mean": [[1.0, 2.0], [1.0, 2.0]],
        }
    )
    assert failing(record, validation_curve=curve) == []
    assert fact in failing(record, validation_curve=curve.model_copy(update=change))


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"core_seconds": 0.0}, "budget seconds"),
        ({"core_seconds": 1e-3}, "core time of all steps"),
        ({"core_seconds": 9.0, "wall_seconds": 1.0}, "core time of the threads"),
        ({"wall_seconds": 720_000.0}, "wall-clock time per seed"),
    ],
)
def test_times_that_contradict_each_other_are_noticed(records, change, fact):
    record = records["budget"]
    one_thread = record.environment.model_copy(update={"threads": 1})
    budget = record.budget.model_copy(update=change)
    assert fact in failing(record, budget=budget, environment=one_thread)


def test_what_no_run_writes_is_noticed(records):
    record = records["steps"]
    for change, fact in (({"rate": 1.0}, "budget rate"), ({"device_seconds": 1.0}, "device time")):
        assert fact in failing(record, budget=record.budget.model_copy(update=change))


def test_quantiles_are_in_order(records):
    curve = records["budget"].validation_curve.model_dump()
    for seed in curve["q05"]:
        seed[-1] = 1e300
    with pytest.raises(ValueError, match="quantiles are not in order"):
        ValidationCurve(**curve)


def test_a_track_of_core_time_is_not_that_of_a_gpu(records):
    record = records["budget"]
    on_gpu = record.environment.model_copy(update={"device": "NVIDIA H100"})
    assert failing(record, environment=on_gpu) == ["trained on a GPU"]


def test_a_row_of_a_track_can_t_have_lost_its_budget(records, tmp_path):
    store = RecordStore(shutil.copytree(records["store"].folder, tmp_path / "copy"))
    path = store.path(records["budget"].spec)
    path = reseal(path, lambda c: c.update(budget=None, missing={"budget": "lost"}))
    assert "missing" in [check.name for check in verify(path) if not check.holds]


@pytest.mark.parametrize(("gained", "holds"), [(0.0, True), (-3.0, True), (3.0, False)])
def test_the_last_validation_is_no_better_than_the_weights(records, tmp_path, gained, holds):
    store = RecordStore(shutil.copytree(records["store"].folder, tmp_path / "copy"))

    def change(content):
        for seed in content["validation_curve"]["mean"]:
            seed[-1] += gained

    path = reseal(store.path(records["budget"].spec), change)
    checks = [check for check in verify(path) if "last validation" in check.name]
    assert len(checks) == 2
    assert {check.holds for check in checks} == {holds}


@pytest.mark.parametrize(("better", "holds"), [("lower", [False, True]), ("higher", [True, False])])
def test_a_claimed_mean_is_no_better_in_either_direction(better, holds):
    task = SimpleNamespace(statistic="mean", primary=Primary("nll", better), errors={})
    plan = SimpleNamespace(task=task)
    assert [_is_no_better(claimed, 1.0, plan) for claimed in (0.5, 1.5)] == holds


def test_times_are_claims(records):
    claimed = cost_claims(records["budget"])
    assert claimed["steps of the budget"] == "60 steps per second"
    assert set(claimed) == {"core time per seed", "steps of the budget", "validation"}
    assert cost_claims(records["solver"]) == {}


def test_training_again_takes_the_recorded_steps(records, monkeypatch):
    monkeypatch.setattr(budgets, "measure_rate", pytest.fail)
    path = records["store"].path(records["budget"].spec)
    again = retrain(path)
    assert [check.name for check in again.checks if not check.holds] == []
    names = {check.name for check in again.checks}
    assert {"core time per seed, again", "weights, trained again"} <= names
    assert again.record.proof.same_bits
    before, now = records["budget"].budget, again.record.budget
    assert (now.asked, now.steps, now.rate) == (before.asked, before.steps, before.rate)
    assert now.core_seconds != before.core_seconds  # that of now, not of the claim


def test_training_again_notices_other_scores_and_too_low_a_cost(records):
    record = records["budget"]
    ready = ReadyModels([], record.operations, None, record.budget, record.validation_curve)
    assert all(check.holds for check in compare_costs_again(record, ready, exactly=True))
    cheap = record.budget.model_copy(update={"core_seconds": 1e-6})
    shifted = record.validation_curve.model_copy(
        update={"mean": [[9.0] * len(record.validation_curve.steps)] * 2}
    )
    forged = record.model_copy(update={"budget": cheap, "validation_curve": shifted})
    checks = list(compare_costs_again(forged, ready, exactly=True))
    assert [check.holds for check in checks] == [False, False]
    assert len(list(compare_costs_again(forged, ready, exactly=False))) == 1


def test_training_again_notices_too_little_time_on_a_gpu(records):
    record = records["budget"]
    now = record.budget.model_copy(update={"device_seconds": 36_000.0})
    ready = ReadyModels([], record.operations, None, now, None)
    claimed = record.budget.model_copy(update={"device_seconds": 600.0})
    forged = record.model_copy(update={"budget": claimed, "validation_curve": None})
    failing = [c.name for c in compare_costs_again(forged, ready, exactly=False) if not c.holds]
    assert failing == ["device time per seed, again"]


@pytest.mark.parametrize(
    ("claimed", "measured", "holds"), [(1.0, None, False), (None, 1.0, True), (None, None, True)]
)
def test_weights_without_a_score_have_no_claimed_one(claimed, measured, holds):
    assert _is_no_better(claimed, measured, SimpleNamespace()) is holds
