"""Validation of runs: prompts that no board uses, scored as boards rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_runs import TINY

from iclbench import Recipe, RunSpec, run
from iclbench.api.digits import digits
from iclbench.precision import DTYPES
from iclbench.runs import validators
from iclbench.runs.evaluate import evaluate
from iclbench.runs.models import initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.validators import Validator, validation_prompts, validation_seed
from iclbench.training import validation

CPU = torch.device("cpu")
SMALL = {**TINY, "model": "baseconv", "recipe_args": {"steps": 60, "chunk": 5}}


def plan_of(**changes):
    return resolve(RunSpec(**{**SMALL, **changes}))


@pytest.fixture
def unlimited(monkeypatch):
    """No point is left out for lack of time."""
    monkeypatch.setattr(validation, "LEAST_SECONDS", 1e9)


def test_the_prompts_are_those_of_no_board():
    seeds = {validation_seed(plan_of(eval_seed=seed)) for seed in range(3)}
    assert len(seeds | {0, 1, 2}) == 6
    plan = plan_of()
    batches = [plan.task.evaluation_batches(64, seed, torch.float32)[0]
               for seed in (0, validation_seed(plan))]  # fmt: skip
    assert not torch.equal(batches[0].target, batches[1].target)


def test_a_score_is_the_ranked_statistic_of_the_validation_prompts():
    plan = plan_of()
    module = initial_module(plan, 0).eval()
    score = Validator(plan, 96, CPU, 32).score(module)
    batches = plan.task.evaluation_batches(96, validation_seed(plan), DTYPES["float32"])
    context = validators.EvaluationContext(CPU, torch.Generator())
    values = evaluate(plan.task, module, batches, context, [])["squared_error"]
    expected = digits(values, "squared")
    assert plan.task.statistic == "mean digits"
    assert score["mean"] == pytest.approx(expected.mean(), abs=1e-4)
    for name, q in (("q05", 0.05), ("median", 0.5), ("q95", 0.95)):
        assert score[name] == pytest.approx(np.quantile(expected, q), abs=1e-3)


def test_a_task_without_digits_is_scored_by_its_mean():
    plan = plan_of(task="categorical", task_args={}, model="transformer")
    score = Validator(plan, 32, CPU, 32).score(initial_module(plan, 0).eval())
    assert plan.task.statistic == "mean"
    assert 0 < score["q05"] < score["median"] < score["q95"]


def test_scores_that_are_not_finite_are_none():
    plan = plan_of(task="categorical", task_args={}, model="transformer")
    module = initial_module(plan, 0).eval()
    with torch.no_grad():
        next(module.parameters()).fill_(torch.nan)
    assert set(Validator(plan, 32, CPU, 32).score(module).values()) == {None}


@pytest.mark.usefixtures("unlimited")
class Hungry(torch.nn.Module):
    """Has memory for at most 8 prompts at once."""

    def __init__(self, module, error):
        super().__init__()
        self.module, self.error, self.sizes = module, error, []

    def forward(self, prompt):
        self.sizes.append(len(prompt.tokens))
        if self.sizes[-1] > 8:
            raise self.error
        return self.module(prompt)


def test_where_memory_is_short_fewer_prompts_are_evaluated_at_once():
    plan = resolve(RunSpec(model="lsa", **TINY))
    module, device = initial_module(plan, 0), torch.device("cpu")
    expected = Validator(plan, 64, device, 8).score(module)
    hungry = Hungry(module, RuntimeError("CUFFT_ALLOC_FAILED"))
    validator = Validator(plan, 64, device, 32)
    assert validator.score(hungry) == expected
    assert hungry.sizes == [32, 16] + 8 * [8]
    assert validator.score(hungry) == expected
    assert hungry.sizes[10:] == 8 * [8]  # it has learned from it
    for size, error in ((1, MemoryError()), (32, ValueError("a mistake"))):
        with pytest.raises(type(error)):
            Validator(plan, 64, device, size).score(Faulty(error))


class Faulty(torch.nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, prompt):
        raise self.error


def test_a_record_has_the_curve_of_every_seed(tmp_path):
    record = run(**SMALL, out=tmp_path)
    curve = record.validation_curve
    assert curve.steps == validation.points_of(60, 5)
    assert curve.seconds == sorted(curve.seconds)
    assert curve.seconds[-1] == pytest.approx(record.budget.core_seconds, rel=1e-3)
    assert curve.operations[-1] == record.operations.training
    assert len(curve.mean) == 2
    plan = plan_of()
    assert curve.prompts == validation_prompts(plan, plan.recipe) == validators.FEWEST
    assert curve.share > 0
    assert curve.mean[0] != curve.mean[1]


@pytest.mark.usefixtures("unlimited")
def test_weights_are_the_same_bits_with_and_without_a_curve(tmp_path, monkeypatch):
    with_curve = run(**SMALL, out=tmp_path / "a")
    monkeypatch.setattr(validation.Validation, "after", lambda *args: None)
    without = run(**SMALL, out=tmp_path / "b")
    assert with_curve.validation_curve.steps
    assert not without.validation_curve.steps
    assert with_curve.weights_file.sha256 == without.weights_file.sha256
    assert with_curve.training.curve == without.training.curve


@pytest.mark.slow
def test_validation_takes_at_most_its_share_of_a_longer_training(tmp_path, monkeypatch):
    """With a fixed limit of 0 seconds, what is measured stays within 3%."""
    monkeypatch.setattr(validation, "LEAST_SECONDS", 0.0)
    record = run(**{**SMALL, "recipe_args": {"steps": 2000}}, out=tmp_path)
    curve = record.validation_curve
    assert len(curve.steps) > 3
    # A point may take longer than those before it.
    assert curve.share < 1.5 * validation.SHARE


@pytest.mark.usefixtures("unlimited")
def test_plans_with_tasks_of_their_own_have_prompts_of_their_own(tmp_path):
    noises = {"least": 0.0, "most": 1.0}
    plans = {
        name: plan_of(task_args={"dim": 2, "examples": 4, "noise": noise})
        for name, noise in noises.items()
    }
    records = run_plans(list(plans.values()), Settings(tmp_path))
    curves = [record.validation_curve for record in records]
    assert [curve.statistic for curve in curves] == ["mean digits", "mean"]
    for plan, record in zip(plans.values(), records, strict=True):
        (alone,) = run_plans([plan], Settings(tmp_path / "alone"))
        assert alone.id == record.id
        np.testing.assert_allclose(
            alone.validation_curve.mean, record.validation_curve.mean, rtol=1e-2, atol=1e-3
        )


@pytest.mark.usefixtures("storytelling")
def test_a_task_that_ranks_by_a_grade_has_no_curve(tmp_path):
    record = run(**{**SMALL, "task": "ranked"}, grader="length", out=tmp_path)
    assert record.ranking.metric == "grade_length"
    assert record.validation_curve is None
    assert record.budget.steps == 60


def test_the_number_of_prompts_follows_from_operations():
    plan = plan_of()
    count = lambda **values: validation_prompts(plan, Recipe(**values))  # noqa: E731
    assert count(steps=20, batch=8) == validators.FEWEST
    assert count(steps=10**6, batch=256) == validators.MOST
    points = len(validation.points_of(1500, 20))
    assert count(steps=1500, batch=64) == int(0.015 * 3 * 64 * 1500 / points)
