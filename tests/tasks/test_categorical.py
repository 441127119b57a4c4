"""The categorical tasks: functions, classes, bounds and pools."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import EvaluationContext, UsageError, run, training_batch
from iclbench.api.config import parse_config
from iclbench.kit.tasks import check_task
from iclbench.runs.evaluate import evaluate, floor
from iclbench_categorical.anchors import Anchors
from iclbench_categorical.quadrants import Quadrants

CPU = torch.device("cpu")


def make_task(cls, **config):
    return cls(parse_config(cls.Config, config, "task"))


def log_probabilities(task, batch):
    return batch.truth["log_probabilities"].numpy()


def test_the_function_of_anchors_equals_the_paper_s():
    """Appendix E, written out for every context and query."""
    task = make_task(Anchors, queries=3)
    draws = task.evaluation_draws(20, 0)
    (batch,) = task.evaluation_batches(20, 0, torch.float64)
    W = task.parameters["embedding"].numpy()
    assert W.shape == (25, 5)
    for i in range(20):
        anchors = draws["anchors"][i]
        classes = np.argsort(draws["order"][i])[:5]
        assert len(set(classes)) == 5
        rates = [
            math.log(10) / min(np.linalg.norm(a - b) for k, b in enumerate(anchors) if k != m)
            for m, a in enumerate(anchors)
        ]
        for q, u in enumerate(batch.prompt.query[i].numpy()):
            f = 10 * sum(
                W[c] * math.exp(-r * np.linalg.norm(u - a))
                for c, r, a in zip(classes, rates, anchors, strict=True)
            )
            logits = W @ f
            expected = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
            np.testing.assert_allclose(log_probabilities(task, batch)[i, q], expected, atol=1e-9)


def test_quadrants_have_different_classes():
    task = make_task(Quadrants)
    (batch,) = task.evaluation_batches(200, 0, torch.float64)
    W = task.parameters["embedding"]
    log_probabilities_by_class = (W @ W.mT).log_softmax(dim=1)
    quadrants = set()
    for x, logs in zip(batch.prompt.query[:, 0], batch.truth["log_probabilities"][:, 0],
                       strict=True):  # fmt: skip
        distance = (log_probabilities_by_class - logs).abs().amax(dim=1)
        assert distance.min() < 1e-12
        quadrants.add((bool(x[0] < 0), bool(x[1] < 0)))
    assert len(quadrants) == 4
    assert float(batch.prompt.x.abs().max()) <= 1


@pytest.mark.parametrize("cls", [Anchors, Quadrants])
def test_classes_are_drawn_with_their_probabilities(cls):
    # The mean of −log p over the draws is the mean entropy.
    task = make_task(cls, examples=5)
    (batch,) = task.evaluation_batches(8000, 0, torch.float64)
    logs = batch.truth["log_probabilities"][:, 0]
    picked = logs.gather(1, batch.target)[:, 0]
    entropy = -(logs.exp() * logs).sum(dim=1)
    error = float((-picked).std() / math.sqrt(8000))
    assert float(-picked.mean()) == pytest.approx(float(entropy.mean()), abs=4 * error)
    assert batch.prompt.y.min() >= 0
    assert batch.prompt.y.max() < task.config.classes


@pytest.mark.parametrize(("cls", "low", "high"), [(Anchors, 0.55, 0.65), (Quadrants, 0.4, 0.6)])
def test_the_bound_is_what_the_true_probabilities_attain(cls, low, high):
    task = make_task(cls)
    (batch,) = task.evaluation_batches(2048, 0, torch.float32)
    bound = floor(task, [batch])
    assert low < bound["accuracy"].mean() < high

    class Oracle(nn.Module):
        def forward(self, prompt):
            return batch.truth["log_probabilities"]

    context = EvaluationContext(CPU, torch.Generator())
    best = evaluate(task, Oracle(), [batch], context, [])
    for name, tolerance in (("accuracy", 0.04), ("nll", 0.1)):
        assert best[name].mean() == pytest.approx(bound[name].mean(), abs=tolerance)


@pytest.mark.parametrize("cls", [Anchors, Quadrants])
def test_the_likeliest_classes_share_a_tie(cls):
    task = make_task(cls)
    (batch,) = task.evaluation_batches(64, 0, torch.float32)
    chance = task.chance(batch)["accuracy"]
    torch.testing.assert_close(chance, torch.full_like(chance, 1 / task.config.classes))
    logits = torch.zeros(64, 1, task.config.classes)
    logits[..., 3:5] = 1.0
    expected = ((batch.target == 3) | (batch.target == 4)).double()[:, 0] / 2
    torch.testing.assert_close(task.metrics(logits, batch)["accuracy"], expected)
    logits[0, 0, 7] = torch.nan
    assert task.metrics(logits, batch)["accuracy"][0] == 0


def test_points_near_the_anchors_raise_the_bound():
    """About 0.86, as the true probabilities are then more extreme."""
    task = make_task(Anchors, spread=0.1)
    bound = floor(task, task.evaluation_batches(2048, 0, torch.float32))
    assert bound["accuracy"].mean() > 0.8


@pytest.mark.parametrize("cls", [Anchors, Quadrants])
@pytest.mark.parametrize("config", [{}, {"pool": 7}, {"queries": 3, "examples": 4}], ids=str)
def test_the_tasks_conform(cls, config):
    check_task(make_task(cls, **config), n=6)


def test_a_pool_is_the_same_for_every_run_and_every_epoch():
    task, again = (make_task(Anchors, pool=8, task_seed=3) for _ in range(2))
    first = training_batch(task, 16, torch.Generator().manual_seed(0), torch.float32)
    other = training_batch(again, 8, torch.Generator().manual_seed(1), torch.float32)

    def contexts(batch, start, stop):
        return {tuple(x[0].tolist()) for x in batch.prompt.x[start:stop]}

    assert len(contexts(first, 0, 8)) == 8
    assert contexts(first, 0, 8) == contexts(first, 8, 16) == contexts(other, 0, 8)
    assert not torch.equal(first.prompt.x[:8], first.prompt.x[8:])
    other_pool = training_batch(make_task(Anchors, pool=8), 8, torch.Generator(), torch.float32)
    assert not contexts(other_pool, 0, 8) & contexts(first, 0, 8)


def test_a_pool_affects_training_only():
    fresh, pooled = make_task(Anchors), make_task(Anchors, pool=5)
    assert fresh.evaluation_digest(8, 0) == pooled.evaluation_digest(8, 0)
    assert Anchors.training_only == {"pool"}


@pytest.mark.parametrize("cls", [Anchors, Quadrants])
def test_training_and_evaluation_have_the_same_distribution(cls):
    task = make_task(cls, examples=4)
    training = training_batch(task, 4096, torch.Generator().manual_seed(0), torch.float64)
    (evaluation,) = task.evaluation_batches(4096, 0, torch.float64)
    for a, b in (
        (training.prompt.x, evaluation.prompt.x),
        (training.prompt.query, evaluation.prompt.query),
    ):
        assert float(a.std()) == pytest.approx(float(b.std()), rel=0.03)
    shares = [torch.bincount(b.prompt.y.flatten(), minlength=25)[:25] / b.prompt.y.numel()
              for b in (training, evaluation)]  # fmt: skip
    torch.testing.assert_close(*shares, atol=0.012, rtol=0)
    repeated = [
        float((b.prompt.y[:, :1] == b.target).double().mean()) for b in (training, evaluation)
    ]
    assert repeated[0] == pytest.approx(repeated[1], abs=0.04)


def test_a_sequence_model_learns(tmp_path):
    record = run(
        model="transformer",
        task="categorical-quadrants",
        task_args={"examples": 20},
        model_args={"layers": 1, "width": 16},
        recipe="quick",
        recipe_args={"steps": 150},
        metrics=("calibration",),
        eval_prompts=256,
        seeds=1,
        out=tmp_path,
    )
    assert record.metrics["nll"].mean < math.log(20)
    assert 0 <= record.analyses["calibration"][0]["expected_calibration_error"] < 1


@pytest.mark.parametrize(
    ("cls", "config", "message"),
    [
        (Anchors, {"anchors": 30}, "anchors=30 exceeds classes=25"),
        (Anchors, {"pool": 0}, "greater than or equal to 1"),
        (Quadrants, {"classes": 3}, "greater than or equal to 4"),
        (Quadrants, {"dim": 3}, "input should be 2"),
    ],
)
def test_bad_configurations_are_refused(cls, config, message):
    with pytest.raises(UsageError, match=message):
        make_task(cls, **config)
