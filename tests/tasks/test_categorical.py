"""The categorical tasks: functions, classes, bounds, pools, calibration and maps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import EvaluationContext, TrainingRandom, UsageError, run, training_batch
from iclbench.api.config import parse_config
from iclbench.api.random import torch_generator
from iclbench.kit.tasks import check_task
from iclbench.runs.evaluate import evaluate, floor
from iclbench_categorical.anchors import Anchors
from iclbench_categorical.calibration import Calibration
from iclbench_categorical.maps import GRID, ProbabilityMaps
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


def test_quadrants_have_different_categories():
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


def maps_of(model, task):
    """The analysis `probability-maps`."""
    context = EvaluationContext(CPU, torch.Generator())
    batches = task.evaluation_batches(2, 0, torch.float64)
    return ProbabilityMaps().analysis(model, task, batches, context)


def test_maps_of_a_model_with_the_true_probabilities_are_the_truth():
    """Points, quadrants and categories are where they belong in the plane."""
    task = make_task(Quadrants, examples=6)
    W = task.parameters["embedding"]
    quadrants = []

    class Oracle(nn.Module):
        def forward(self, prompt):
            x = prompt.query[:, 0]
            quadrant = (x[:, 0] < 0).long() + 2 * (x[:, 1] < 0).long()
            return (W[torch.as_tensor(quadrants)[quadrant]] @ W.mT)[:, None]

    # The context's categories, from the same draws as the metric's.
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
        (Anchors, {"anchors": 30}, "30 anchors need as many classes"),
        (Anchors, {"pool": 0}, "greater than or equal to 1"),
        (Quadrants, {"classes": 3}, "greater than or equal to 4"),
        (Quadrants, {"dim": 3}, "input should be 2"),
    ],
)
def test_bad_configurations_are_refused(cls, config, message):
    with pytest.raises(UsageError, match=message):
        make_task(cls, **config)
