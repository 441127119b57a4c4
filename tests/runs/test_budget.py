"""Training by a budget: steps are fixed once and used again, and the run's id holds the budget."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from small_runs import TINY

from iclbench import Recipe, RecordError, RunSpec, UsageError, run
from iclbench.api.budget import Budget
from iclbench.files import write_atomically
from iclbench.runs import budget as budgets
from iclbench.runs import training as trainings
from iclbench.runs.budget import require_device, track_of
from iclbench.runs.fixed_steps import FixedSteps, steps_path
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.training import checkpoint_path
from iclbench.training.loop import Training

BUDGETED = {**TINY, "model": "baseconv", "recipe": "quick", "budget": "1s",
            "model_args": {"layers": 1, "width": 8}}  # fmt: skip


def plan_of(**changes):
    return resolve(RunSpec(**{**BUDGETED, **changes}))


@pytest.fixture
def rate(monkeypatch):
    """Trials that measure 90 steps per second, and how many there were."""
    trials = []

    def measure(trial, seconds):
        trials.append((len(trial.members), seconds))
        return 90.0

    monkeypatch.setattr(budgets, "measure_rate", measure)
    return trials


def test_the_id_holds_the_budget_and_never_the_steps():
    spec = plan_of().spec
    assert spec.budget == "1s"
    assert "steps" not in spec.recipe_args
    assert spec.id == plan_of(budget="1s").spec.id
    assert len({spec.id, plan_of(budget="2s").spec.id, plan_of(budget=None).spec.id}) == 3
    assert spec.train_key() != plan_of(budget="2s").spec.train_key()
    solver = plan_of(model="least-squares-qr", model_args={})
    assert solver.spec.budget is None


def test_a_measured_budget_is_kept_and_recorded(tmp_path):
    record = run(**BUDGETED, out=tmp_path)
    budget = record.budget
    assert budget.steps == record.training.steps == int(budget.rate)
    assert (budget.asked, record.track) == ("1s", "1s")
    # Other work on the machine changes how fast a step is, but not severalfold.
    assert 0.3 < budget.core_seconds < 3.0
    assert budget.wall_seconds > 0
    assert budget.device_seconds is None
    assert record.validation_curve.steps[-1] <= budget.steps
    assert not list((tmp_path / "checkpoints").glob("*"))


def test_the_trial_changes_no_bit_and_the_steps_are_those_of_the_recipe(tmp_path, rate):
    by_budget = run(**BUDGETED, out=tmp_path / "a")
    assert by_budget.training.steps == 90
    assert rate == [(2, budgets.LEAST_TRIAL)]
    args = {"steps": 90, "schedule_steps": 1500}
    by_steps = run(**{**BUDGETED, "budget": None}, recipe_args=args, out=tmp_path / "b")
    assert by_steps.budget.asked is None
    assert by_steps.budget.steps == 90
    assert by_budget.weights_file.sha256 == by_steps.weights_file.sha256
    assert by_budget.training.curve == by_steps.training.curve


def test_a_trial_of_the_real_training_leaves_its_streams_alone(tmp_path, monkeypatch):
    """With a real trial before it, a training gives the same bits as without."""
    measured = budgets.measure_rate

    def measure(trial, seconds):
        measured(trial, seconds)
        return 60.0

    monkeypatch.setattr(budgets, "measure_rate", measure)
    after_trial = run(**BUDGETED, out=tmp_path / "a")
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 60.0)
    alone = run(**BUDGETED, out=tmp_path / "b")
    assert after_trial.weights_file.sha256 == alone.weights_file.sha256


class CutError(Exception):
    """Simulates a killed process."""


def interrupted(monkeypatch, plans, settings, at):
    """Run until a step, at which the process dies."""
    advance = Training.advance

    def cut(self):
        if self.step >= at and self.recipe.steps < budgets.ENDLESS:
            raise CutError
        return advance(self)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "advance", cut)
        with pytest.raises(CutError):
            run_plans(plans, settings)


@pytest.mark.parametrize("at", [0, 40])
def test_a_killed_training_continues_with_the_same_steps(tmp_path, monkeypatch, rate, at):
    plans = [plan_of()]
    settings = Settings(tmp_path / "a", checkpoint_seconds=0)
    interrupted(monkeypatch, plans, settings, at)
    path = steps_path(checkpoint_path(plans, settings.out))
    assert json.loads(path.read_text())["steps"] == 90
    # A second measurement would give another rate.
    monkeypatch.setattr(budgets, "measure_rate", pytest.fail)
    (resumed,) = run_plans(plans, settings)
    assert resumed.budget.steps == resumed.training.steps == 90
    assert resumed.budget.rate == 90.0
    assert not path.exists()
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 90.0)
    (straight,) = run_plans(plans, Settings(tmp_path / "b"))
    assert resumed.weights_file.sha256 == straight.weights_file.sha256
    assert resumed.validation_curve.mean == straight.validation_curve.mean


def test_without_resuming_the_steps_are_fixed_again(tmp_path, monkeypatch, rate):
    plans = [plan_of()]
    interrupted(monkeypatch, plans, Settings(tmp_path, checkpoint_seconds=0), 40)
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 50.0)
    (record,) = run_plans(plans, Settings(tmp_path, resume=False))
    assert record.training.steps == 50


def test_steps_that_other_code_fixed_are_fixed_again(tmp_path, rate):
    plans = [plan_of()]
    path = steps_path(checkpoint_path(plans, tmp_path))
    path.parent.mkdir()
    fixed = budgets.FixedSteps(steps=7, rate=7.0, asked="1s", code={"torch": "other"})
    path.write_text(fixed.model_dump_json())
    (record,) = run_plans(plans, Settings(tmp_path))
    assert record.training.steps == 90


def test_other_code_leaves_the_steps_of_a_checkpoint_as_they_are(tmp_path, monkeypatch, rate):
    """It can't continue from it, but the code that made it can."""
    plans, settings = [plan_of()], Settings(tmp_path, checkpoint_seconds=0)
    interrupted(monkeypatch, plans, settings, 40)
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 50.0)
    with monkeypatch.context() as patch:
        patch.setattr(trainings, "training_code", lambda plans: {"torch": "other"})
        with pytest.raises(RecordError, match=r"was made by other code of .*torch; delete it"):
            run_plans(plans, settings)
    (record,) = run_plans(plans, settings)
    assert record.training.steps == 90


def test_the_gradients_that_a_schedule_measures_are_paid_by_the_budget(rate):
    recipe = Recipe(steps=9, batch=1, schedule="adaptive", measure_every=8, measure_batches=4)
    trial = SimpleNamespace(members=[None])
    assert budgets._rate(recipe, lambda _: trial, Budget(1)) == pytest.approx(90 / 1.5)


def test_the_times_of_a_budget_are_those_of_one_seed():
    clock = SimpleNamespace(core=8.0, wall=4.0, device=2.0)
    trained = SimpleNamespace(states=[{}, {}], clock=clock)
    told = budgets.budget_report(trained, budgets.FixedSteps(steps=5))
    assert (told.core_seconds, told.wall_seconds, told.device_seconds) == (4.0, 2.0, 1.0)


def test_a_damaged_file_of_steps_is_refused(tmp_path, monkeypatch, rate):
    plans, settings = [plan_of()], Settings(tmp_path, checkpoint_seconds=0)
    interrupted(monkeypatch, plans, settings, 40)
    path = steps_path(checkpoint_path(plans, settings.out))
    path.write_text(path.read_text()[:20])
    with pytest.raises(RecordError, match="can't be read; delete it to start afresh"):
        run_plans(plans, settings)


def test_a_lost_file_of_steps_does_not_change_the_schedule_of_a_checkpoint(
    tmp_path, monkeypatch, rate
):
    plans, settings = [plan_of()], Settings(tmp_path, checkpoint_seconds=0)
    interrupted(monkeypatch, plans, settings, 40)
    steps_path(checkpoint_path(plans, settings.out)).unlink()
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 50.0)
    with pytest.raises(RecordError, match="is of another number of steps"):
        run_plans(plans, settings)


def test_a_training_that_began_afresh_and_was_killed_at_once_continues(tmp_path, monkeypatch, rate):
    plans = [plan_of()]
    interrupted(monkeypatch, plans, Settings(tmp_path, checkpoint_seconds=0), 40)
    monkeypatch.setattr(budgets, "measure_rate", lambda trial, seconds: 50.0)
    interrupted(monkeypatch, plans, Settings(tmp_path, resume=False), 20)
    (record,) = run_plans(plans, Settings(tmp_path))
    assert record.training.steps == 50


def test_two_processes_that_begin_at_once_take_the_same_steps(tmp_path, monkeypatch):
    """The second measures another rate, and finds the steps of the first when it is done."""
    plan, settings = plan_of(), Settings(tmp_path)
    path = steps_path(checkpoint_path([plan], tmp_path))

    def first_fixes(trial, seconds):
        first = FixedSteps(steps=70, rate=70.0, asked="1s", code=trainings.training_code([plan]))
        write_atomically(path, first.model_dump_json().encode())
        return 50.0

    monkeypatch.setattr(budgets, "measure_rate", first_fixes)
    (record,) = run_plans([plan], settings)
    assert (record.training.steps, record.budget.rate) == (70, 70.0)


def test_steps_that_other_code_fixed_at_once_are_refused(tmp_path, monkeypatch):
    plan = plan_of()
    path = steps_path(checkpoint_path([plan], tmp_path))

    def other_fixes(trial, seconds):
        fixed = FixedSteps(steps=70, rate=70.0, asked="1s", code={"torch": "other"})
        write_atomically(path, fixed.model_dump_json().encode())
        return 50.0

    monkeypatch.setattr(budgets, "measure_rate", other_fixes)
    with pytest.raises(RecordError, match=r"was made by other code of .*torch; delete it"):
        run_plans([plan], Settings(tmp_path))


def test_a_plan_with_steps_measures_nothing(tmp_path, monkeypatch, rate):
    """As when a record's training is repeated."""
    first = run(**BUDGETED, out=tmp_path / "a")
    monkeypatch.setattr(budgets, "measure_rate", pytest.fail)
    plan = replace(plan_of(), fixed=FixedSteps.of(first))
    (again,) = run_plans([plan], Settings(tmp_path / "b"))
    assert again.id == first.id
    assert again.weights_file.sha256 == first.weights_file.sha256
    told = again.budget.model_dump(include={"asked", "steps", "rate"})
    assert (
        told
        == first.budget.model_dump(include=set(told))
        == {"asked": "1s", "steps": 90, "rate": 90.0}
    )


def test_plans_of_one_program_share_its_steps(tmp_path, rate):
    plans = [plan_of(recipe_args={"learning_rate": value}) for value in (1e-3, 1e-2)]
    records = run_plans(plans, Settings(tmp_path))
    assert rate == [(4, budgets.LEAST_TRIAL)]
    assert [record.budget.steps for record in records] == [90, 90]
    assert records[0].budget.core_seconds == records[1].budget.core_seconds


def test_steps_and_a_budget_are_refused_together():
    with pytest.raises(UsageError, match="give --budget or steps=…, not both"):
        plan_of(recipe_args={"steps": 10})


def test_a_budget_is_of_its_device():
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    for budget, device in ((None, cpu), (None, gpu), ("10m", cpu), ("gpu-1h", gpu)):
        require_device(budget, device)
    with pytest.raises(UsageError, match="gpu-1h is device time; on --device cpu it is core time"):
        require_device("gpu-1h", cpu)
    with pytest.raises(UsageError, match=r"10m is core time; .* such as gpu-10m"):
        require_device("10m", gpu)


def test_tracks():
    assert track_of(plan_of()) == "1s"
    assert track_of(plan_of(budget="600s")) == "10m"
    assert track_of(plan_of(budget=None)) is None
    assert track_of(plan_of(model="least-squares-qr", model_args={})) is None
    paper = {"budget": None, "recipe": "paper"}
    assert track_of(plan_of(**paper)) == "paper"
    assert track_of(plan_of(**paper, recipe_args={"steps": 10})) is None
    assert track_of(plan_of(**paper, recipe_args={"optimizer_args": {"eps": 1e-4}})) is None
    assert track_of(plan_of(recipe="paper")) == "1s"


def test_a_training_from_given_weights_has_no_track(fake):
    plan = plan_of(model="fake", init="complete", model_args={})
    assert (plan.spec.budget, track_of(plan)) == ("1s", None)


def test_a_size_that_the_published_recipe_sets_is_part_of_it():
    args = {"task": "gradient", "task_args": {}, "budget": None, "recipe": "paper"}
    assert track_of(plan_of(**args, model_args={})) == "paper"
    assert track_of(plan_of(**args, model_args={"width": 8})) is None
