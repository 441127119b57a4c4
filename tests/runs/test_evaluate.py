"""Evaluating: which prompts have a floor, and how often it is computed."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from support import evaluation_context
from torch import nn

from iclbench import Axis, Metric, RunError, load_task, predict
from iclbench.runs import evaluate
from iclbench.runs.evaluate import floor
from iclbench_least_squares.fixed import FixedConfig, LeastSquares


class Counted(LeastSquares):
    calls = 0

    def exact_answer(self, batch):
        type(self).calls += 1
        return super().exact_answer(batch)


def test_an_exact_floor_is_computed_once_for_a_set_of_prompts():
    Counted.calls = 0
    first, again = (
        floor(task, task.evaluation_batches(8, 3, torch.float32))
        for task in (Counted(FixedConfig()), Counted(FixedConfig()))
    )
    assert Counted.calls == 1
    np.testing.assert_array_equal(first["squared_error"], again["squared_error"])
    for config, seed, dtype in (
        (FixedConfig(), 4, torch.float32),
        (FixedConfig(), 3, torch.float64),
        (FixedConfig(dim=4), 3, torch.float32),
    ):
        task = Counted(config)
        floor(task, task.evaluation_batches(8, seed, dtype))
    assert Counted.calls == 4


def test_a_floor_of_other_targets_is_not_taken_for_that_of_the_same_prompts():
    task = LeastSquares(FixedConfig())
    (batch,) = task.evaluation_batches(4, 11, torch.float32)
    near, far = (floor(task, [batch._replace(target=batch.target + d)]) for d in (0.0, 1.0))
    assert (far["squared_error"] > near["squared_error"]).all()


def test_only_the_first_prompts_have_a_floor(monkeypatch):
    monkeypatch.setattr(evaluate, "FLOOR_PROMPTS", 5)
    task = load_task("least-squares-prefixes", dim=2, examples=3)
    batches = task.evaluation_batches(12, 0, torch.float32)
    values = floor(task, batches)
    assert values["prefix_error"].shape == (5, 4)
    monkeypatch.setattr(evaluate, "FLOOR_PROMPTS", 4096)
    all_values = floor(task, batches)
    np.testing.assert_array_equal(values["prefix_error"], all_values["prefix_error"][:5])


def test_a_few_floors_are_kept(monkeypatch):
    monkeypatch.setattr(evaluate, "KEPT", 2)
    task = load_task("ridge", dim=2, examples=3)
    for seed in range(20):
        floor(task, task.evaluation_batches(2, seed, torch.float32))
    assert len(evaluate._exact_floors) <= 2


class Counting(nn.Module):
    """Predicts zeros, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, prompt):
        self.calls += 1
        return torch.zeros(len(prompt.query), 1, 1)


class Bias(Metric):
    def supports(self, task):
        return None

    def score(self, prediction, task, batch):
        error = (prediction - batch.target)[:, 0, 0]
        # What a metric does to its prediction changes no other's.
        prediction += 1
        return {self.name: error}


class Asking(Bias):
    """Asks for the same prediction, and for that of another prompt."""

    def compute(self, model, task, batch, context):
        changed = batch.prompt._replace(query=2 * batch.prompt.query)
        predict(model, changed, context)
        return super().compute(model, task, batch, context)


@pytest.mark.parametrize(("kinds", "calls"), [((), 1), ((Bias, Bias), 1), ((Bias, Asking), 2)])
def test_metrics_get_the_predictions_that_evaluation_has(kinds, calls):
    task = LeastSquares(FixedConfig())
    metrics = [kind() for kind in kinds]
    for index, metric in enumerate(metrics):
        metric.name = f"bias_{index}"
    model, context = Counting(), evaluation_context(batch_size=8)
    for seed in (0, 1):
        model.calls = 0
        batches = task.evaluation_batches(8, seed, torch.float32)
        values = evaluate.evaluate(task, model, batches, context, metrics)
        assert model.calls == calls
        for metric in metrics:
            np.testing.assert_array_equal(values[metric.name] ** 2, values["squared_error"])


@pytest.mark.parametrize("shape", [(), (3,), (8, 1), (8, 4)])
def test_a_metric_has_a_value_for_each_prompt(shape):
    class Misshapen(Metric):
        name = "misshapen"

        def supports(self, task):
            return None

        def axes(self, model):
            return {"curve": Axis("step", (0.0, 1.0))} if shape == (8, 4) else {}

        def compute(self, model, task, batch, context):
            return {"curve": torch.zeros(shape, dtype=torch.float64)}

    task = load_task("least-squares", dim=2, examples=4)
    batches = task.evaluation_batches(8, 0, torch.float32)
    expected = (8, 2) if shape == (8, 4) else (8,)
    with pytest.raises(RunError, match=re.escape(f"misshapen: curve is {shape}, not {expected}")):
        evaluate.evaluate(task, Answers(), batches, evaluation_context(), [Misshapen()])


class Answers(nn.Module):
    """Answers 0."""

    def forward(self, prompt):
        return torch.zeros_like(prompt.query[..., :1])


def test_a_task_that_is_corrected_has_a_floor_of_its_own():
    """A class that is defined again, as in a notebook, has the name of the wrong one."""

    def wrong_by(error):
        def exact_answer(self, batch):
            return LeastSquares.exact_answer(self, batch) + error

        return type("Noted", (LeastSquares,), {"exact_answer": exact_answer})(FixedConfig())

    floors = []
    for task in (wrong_by(0.1), wrong_by(0.0)):
        batches = task.evaluation_batches(4, 12, torch.float64)
        floors.append(floor(task, batches)["squared_error"])
    assert floors[0].min() > 1e-3
    assert floors[1].max() < 1e-20
