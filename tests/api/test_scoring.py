"""The part of a task that scores: kinds of floors, ranked statistics, errors and chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from iclbench import Batch, EvaluationContext, Primary, Sequence, Task, TaskConfig, load_task
from iclbench.plugins import host

CONTEXT = EvaluationContext(torch.device("cpu"), torch.Generator())


class Plain(Task[TaskConfig]):
    """Twice a token; by default without a floor."""

    name, version, Config = "plain", 1, TaskConfig
    signature = None

    def draw(self, random):
        return {"x": random.normal("x", 3, 1)}

    def arrange(self, draws):
        return Batch(Sequence(draws["x"]), draws["x"] / 3)

    def loss(self, prediction, target):
        return (prediction - target).square().mean(dim=(1, 2))

    def metrics(self, prediction, batch):
        return {
            "squared_error": self.loss(prediction, batch.target),
            "largest": (prediction - batch.target).abs().amax(dim=(1, 2)),
        }

    def reference(self, batch):
        return batch.prompt.tokens * 0.5


class Exact(Plain):
    floor_kind = "exact"
    errors = {"squared_error": "squared", "largest": "absolute"}


def test_an_exact_floor_is_the_target_rounded_once():
    task = Exact(TaskConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    rounded = batch.target.float().double()
    assert torch.equal(task.exact_answer(batch), batch.target)
    assert torch.equal(
        task.floor(batch, CONTEXT)["squared_error"], task.loss(rounded, batch.target)
    )
    assert task.floor_name == "attainable"
    assert task.statistic == "mean digits"


@pytest.mark.parametrize("kind", ["bayes", "bound", "none"])
def test_other_floors_are_those_of_the_reference(kind):
    task = type("Other", (Plain,), {"floor_kind": kind})(TaskConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    expected = task.loss(batch.prompt.tokens.double() * 0.5, batch.target)
    torch.testing.assert_close(task.floor(batch, CONTEXT)["squared_error"], expected)
    assert task.floor_name != "attainable"
    assert task.statistic == "mean"


def test_digits_are_ranked_only_if_the_primary_metric_is_an_error():
    class Ranked(Exact):
        errors = {"squared_error": "squared"}
        primary = Primary("largest")

    assert Ranked(TaskConfig()).statistic == "mean"


def test_errors_at_a_distance_keep_their_power():
    task = Exact(TaskConfig())
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    for distance in (1e-17, 1.0):
        errors = task.errors_at(batch, lambda values, d=distance: torch.full_like(values, d))
        assert errors["squared_error"].tolist() == pytest.approx([distance**2] * 4, rel=1e-6)
        assert errors["largest"].tolist() == pytest.approx([distance] * 4, rel=1e-6)


def test_chance_predicts_zero_or_equal_probabilities():
    task = load_task("least-squares")
    (batch,) = task.evaluation_batches(8192, 0, torch.float64)
    assert float(task.chance(batch)["squared_error"].mean()) == pytest.approx(5, rel=0.05)
    task = load_task("categorical")
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    assert task.chance(batch)["nll"].tolist() == pytest.approx([math.log(25)] * 4)


def test_chance_of_the_other_tasks():
    task = load_task("square", dim=4, length=3)
    (batch,) = task.evaluation_batches(4096, 0, torch.float64)
    # The variance of a squared standard normal number.
    assert float(task.chance(batch)["squared_error"].mean()) == pytest.approx(2, rel=0.1)
    task = load_task("gradient", iterates=3)
    (batch,) = task.evaluation_batches(4, 0, torch.float64)
    start = (batch.prompt.w - batch.truth["w"]).square().sum(dim=(1, 2))
    by_iterate = task.chance(batch)["weight_error_by_iterate"]
    torch.testing.assert_close(by_iterate, start[:, None].expand(-1, 4))


@pytest.mark.parametrize(
    "name", ["least-squares", "least-squares-prefixes", "least-squares-features"]
)
def test_regression_is_exact_only_if_the_examples_determine_the_weights(name):
    assert load_task(name, dim=4, examples=4).floor_kind == "exact"
    assert load_task(name, dim=4, examples=3).floor_kind == "bayes"
    assert load_task(name, dim=4, examples=6, noise=0.1).floor_kind == "bayes"


def test_under_noise_the_floor_is_the_posterior_mean():
    """Its expected error is the posterior's variance, σ² qᵀ(XᵀX + σ²I)⁻¹q."""
    task = load_task("least-squares", dim=4, examples=6, noise=0.7)
    (batch,) = task.evaluation_batches(4096, 0, torch.float64)
    x, y, q = (t.numpy() for t in batch.prompt[1:])
    gram = x.transpose(0, 2, 1) @ x + 0.49 * np.eye(4)
    prediction = q @ np.linalg.solve(gram, x.transpose(0, 2, 1) @ y)
    errors = task.floor(batch, CONTEXT)["squared_error"].numpy()
    np.testing.assert_allclose(
        errors, (prediction - batch.target.numpy())[:, 0, 0] ** 2, atol=1e-12
    )
    variance = 0.49 * (q @ np.linalg.solve(gram, q.transpose(0, 2, 1)))[:, 0, 0]
    assert errors.mean() == pytest.approx(variance.mean(), rel=0.1)


def test_every_task_says_what_its_floor_is():
    for _, entry in host().entries("task"):
        task = host().load("task", entry.name, Task)
        assert task.floor_summary.endswith(".")
