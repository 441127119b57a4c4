"""The metrics `calibration` and `probability-maps` of the categorical tasks."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from iclbench import EvaluationContext, TrainingRandom
from iclbench.api.config import parse_config
from iclbench.api.random import torch_generator
from iclbench_categorical.anchors import Anchors
from iclbench_categorical.calibration import Calibration
from iclbench_categorical.maps import GRID, ProbabilityMaps
from iclbench_categorical.quadrants import Quadrants

CPU = torch.device("cpu")


def make_task(cls, **config):
    return cls(parse_config(cls.Config, config, "task"))


def test_the_calibration_error_is_computed_from_bins():
    class Constant(nn.Module):
        def forward(self, prompt):
            row = torch.full((len(prompt.x), 1, 20), 0.25 / 19, dtype=torch.float64)
            row[..., 0] = 0.75
            return row.log()

    task = make_task(Quadrants)
    batches = task.evaluation_batches(500, 0, torch.float64)
    context = EvaluationContext(CPU, torch.Generator())
    analysis = Calibration().analysis(Constant(), task, batches, context)
    share = float((batches[0].target == 0).double().mean())
    assert analysis["expected_calibration_error"] == pytest.approx(0.75 - share)
    assert sum(analysis["count"]) == 500
    # The plot has no point where no prediction is.
    (known,) = (value for value in analysis["confidence"] if value is not None)
    assert known == pytest.approx(0.75)
    brier = Calibration().compute(Constant(), task, batches[0], context)["brier"]
    right = 0.25**2 + 19 * (0.25 / 19) ** 2
    wrong = 0.75**2 + (1 - 0.25 / 19) ** 2 + 18 * (0.25 / 19) ** 2
    expected = share * right + (1 - share) * wrong
    assert float(brier.mean()) == pytest.approx(expected)


def test_answers_that_are_no_numbers_are_neither_calibrated_nor_right():
    class Broken(nn.Module):
        def forward(self, prompt):
            logits = torch.zeros(len(prompt.x), 1, 20, dtype=torch.float64)
            logits[::2] = torch.nan
            return logits

    task = make_task(Quadrants)
    context = EvaluationContext(CPU, torch.Generator())
    batches = task.evaluation_batches(10, 0, torch.float64)
    analysis = Calibration().analysis(Broken(), task, batches, context)
    assert analysis["expected_calibration_error"] is None

    class Silent(nn.Module):
        def forward(self, prompt):
            return torch.full((len(prompt.x), 1, 20), torch.nan, dtype=torch.float64)

    numbers = maps_of(Silent(), task)
    assert numbers["divergence"] is None
    assert numbers["agreement"] == numbers["accuracy"] == 0


def maps_of(model, task):
    """The analysis `probability-maps`."""
    context = EvaluationContext(CPU, torch.Generator())
    batches = task.evaluation_batches(2, 0, torch.float64)
    return ProbabilityMaps().analysis(model, task, batches, context)


def test_maps_of_a_model_with_the_true_probabilities_are_the_truth():
    """Points, quadrants and classes are where they belong in the plane."""
    task = make_task(Quadrants, examples=6)
    W = task.parameters["embedding"]
    quadrants = []

    class Oracle(nn.Module):
        def forward(self, prompt):
            x = prompt.query[:, 0]
            quadrant = (x[:, 0] < 0).long() + 2 * (x[:, 1] < 0).long()
            return (W[torch.as_tensor(quadrants)[quadrant]] @ W.mT)[:, None]

    # The context's classes, from the same draws as the metric's.
    generator = torch_generator("cpu", "probability maps", task.name)
    draws = task.draw(TrainingRandom([generator], [1], torch.float64))
    quadrants += draws["order"][0].argsort()[:4].tolist()
    analysis = maps_of(Oracle(), task)
    assert analysis["divergence"] == pytest.approx(0.0, abs=1e-12)
    assert analysis["agreement"] == 1
    assert analysis["accuracy"] == analysis["bound"]
    best = (W @ W.mT).argmax(dim=1)
    in_order = [int(best[quadrants[i]]) for i in (0, 1, 3, 2)]
    assert analysis["categories"] == list(dict.fromkeys(in_order))
    shown = analysis["maps"][0]
    assert len(shown["values"]) == len(shown["y"]) == len(shown["x"]) == GRID
    p = (W[quadrants] @ W.mT).softmax(dim=1)[:, in_order[0]]
    corners = [shown["values"][row][column] for row in (-1, 0) for column in (-1, 0)]
    assert corners == pytest.approx(p.tolist(), abs=1e-6)
    batch = task.arrange(draws)
    assert shown["points"]["x"] == pytest.approx(batch.prompt.x[0, :, 0].tolist(), abs=1e-4)
    labels = [int(t) for t in shown["points"]["text"] if t != "○"]
    assert labels == [y for y in batch.prompt.y[0].tolist() if y in analysis["categories"]]


def test_maps_work_for_any_model_and_number_of_queries():
    task = make_task(Quadrants, examples=6, queries=3)

    class Uniform(nn.Module):
        def forward(self, prompt):
            assert prompt.query.shape[1] == 3
            return torch.zeros(len(prompt.x), 3, classes)

    classes = 20
    analysis = maps_of(Uniform(), task)
    assert {v for row in analysis["maps"][0]["values"] for v in row} == {0.05}
    assert analysis["divergence"] > 0.5
    assert (
        ProbabilityMaps().supports(make_task(Anchors)) == "it needs a categorical task with d = 2"
    )
    assert ProbabilityMaps().supports(make_task(Anchors, dim=2)) is None
    classes = 25
    assert maps_of(Uniform(), make_task(Anchors, dim=2, queries=3))["bound"] > 0.3
