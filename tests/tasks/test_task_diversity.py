"""Task diversity: the pool, both Bayes predictors, and the model that holds the pool."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from iclbench import UsageError, check_task, load_task, run
from iclbench.plugins import host
from iclbench.training.schedules import learning_rate_factor
from iclbench_task_diversity.estimators import discrete_mmse, ridge_means
from iclbench_task_diversity.model import FromPool


def task_of(**args):
    return load_task("task-diversity", **{"dim": 3, "examples": 5, "tasks": 4, **args})


def prompts(task, count=300):
    (batch,) = task.evaluation_batches(count, 0, torch.float64)
    return batch


@pytest.mark.parametrize("tasks", [0, 1, 5])
def test_task_conforms(tasks):
    check_task(task_of(tasks=tasks), n=3)


def test_weights_come_from_the_pool_and_a_pool_begins_with_the_smaller_one():
    task = task_of()
    weights = prompts(task).truth["w"][:, :, 0]
    matches = (weights[:, None] == task.pool).all(dim=2)
    assert (matches.sum(dim=1) == 1).all()
    assert matches.double().mean(dim=0).min() > 0.15
    assert torch.equal(task_of(tasks=9).pool[:4], task.pool)
    assert not torch.equal(task_of(task_seed=1).pool, task.pool)
    latent = prompts(task.shifted("latent")).truth["w"][:, :, 0]
    assert not (latent[:, None] == task.pool).all(dim=2).any()
    assert latent.square().mean() == pytest.approx(1.0, abs=0.15)


def test_tokens_have_a_feature_for_values():
    batch = prompts(task_of(), 2)
    tokens, x, y, query = batch.prompt
    assert tokens.shape == (2, 11, 4)
    assert torch.equal(tokens[:, 0::2, 1:], torch.cat([x, query], dim=1))
    assert torch.equal(tokens[:, 1::2, :1], y)
    assert (tokens[:, 0::2, 0] == 0).all()
    assert (tokens[:, 1::2, 1:] == 0).all()


def test_dmmse_is_bayes_rule_over_the_pool():
    task = task_of(noise=0.7)
    batch = prompts(task, 3)
    x, y = batch.prompt.inputs().numpy(), batch.prompt.y.numpy()[:, :, 0]
    answers = task.reference(batch)[:, :, 0].numpy()
    for row, k in itertools.product(range(3), range(6)):
        weights = [
            math.prod(math.exp(-((y[row, i] - w @ x[row, i]) ** 2) / (2 * 0.49)) for i in range(k))
            for w in task.pool.numpy()
        ]
        mean = np.average(task.pool.numpy() @ x[row, k], weights=weights)
        assert answers[row, k] == pytest.approx(mean, rel=1e-9)


def test_dmmse_does_not_depend_on_how_prompts_are_divided(monkeypatch):
    task = task_of()
    batch = prompts(task, 20)
    fields = (batch.prompt.inputs(), batch.prompt.y, task.pool, 0.5)
    whole = discrete_mmse(*fields)
    monkeypatch.setattr("iclbench_task_diversity.estimators.MOST_VALUES", 4 * 6 * 3)
    torch.testing.assert_close(discrete_mmse(*fields), whole, rtol=1e-12, atol=1e-14)


def test_fresh_weights_are_answered_by_ridge_whose_risk_is_a_trace():
    """E error after k examples = E tr((I + XᵀX/σ²)⁻¹), for x and w ~ N(0, I)."""
    task = task_of(examples=6).shifted("latent")
    batch = prompts(task, 3000)
    ridge = ridge_means(batch.prompt.inputs(), batch.prompt.y, 0.5)
    errors = task.metrics(ridge, batch)["prefix_error"]
    for k in (0, 1, 3, 6):
        x = batch.prompt.x[:, :k]
        trace = torch.linalg.inv(torch.eye(3, dtype=x.dtype) + x.mT @ x / 0.25)
        risks = trace.diagonal(dim1=1, dim2=2).sum(dim=1)
        difference = errors[:, k] - risks
        assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(3000)
    few = prompts(task, 20)
    means = ridge_means(few.prompt.inputs(), few.prompt.y, 0.5)
    torch.testing.assert_close(task.reference(few), means, rtol=1e-9, atol=1e-12)


def test_each_predictor_is_the_best_where_it_is_bayes():
    task = task_of(tasks=8, examples=8)
    for shifted, better in ((task, "dmmse"), (task.shifted("latent"), "ridge")):
        batch = prompts(shifted, 1000)
        x, y = batch.prompt.inputs(), batch.prompt.y
        errors = {
            "ridge": shifted.metrics(ridge_means(x, y, 0.5), batch),
            "dmmse": shifted.metrics(discrete_mmse(x, y, task.pool, 0.5), batch),
        }
        other = "dmmse" if better == "ridge" else "ridge"
        assert 1.5 * errors[better]["squared_error"].mean() < errors[other]["squared_error"].mean()
        assert errors["ridge"]["ridge_distance"].max() < 1e-20
        assert errors["dmmse"]["dmmse_distance"].max() < 1e-20
        torch.testing.assert_close(
            errors["ridge"]["dmmse_distance"], errors["dmmse"]["ridge_distance"]
        )
        # A distance is a mean over prefixes, divided by D.
        difference = (ridge_means(x, y, 0.5) - discrete_mmse(x, y, task.pool, 0.5)).square()
        torch.testing.assert_close(
            errors["ridge"]["dmmse_distance"], difference.mean(dim=(1, 2)) / 3
        )


def test_without_a_pool_ridge_is_the_floor_and_there_is_nothing_to_shift():
    task = task_of(tasks=0)
    batch = prompts(task, 20)
    expected = ridge_means(batch.prompt.inputs(), batch.prompt.y, 0.5)
    torch.testing.assert_close(task.reference(batch), expected, rtol=1e-9, atol=1e-12)
    assert not task.shifts
    assert "dmmse_distance" not in task.metrics(expected, batch)


def test_training_targets_have_the_noise_of_the_prompt():
    def drawn(noisy):
        task = task_of(noisy_targets=noisy, noise=2.0)
        batch = task.training_batches(1, 400, [torch.Generator().manual_seed(0)], torch.float64)
        return batch.prompt.y[0, 0], batch.target[0, 0]

    y, noisy = drawn(True)
    torch.testing.assert_close(noisy[:, :-1], y)
    y, clean = drawn(False)
    # The query's noise is in no prompt.
    assert (noisy[:, -1] - clean[:, -1]).std() == pytest.approx(2.0, rel=0.15)
    assert (y - clean[:, :-1]).std() == pytest.approx(2.0, rel=0.1)


def test_the_model_of_one_task_is_exact_and_runs_under_the_shift(tmp_path):
    record = run(
        model="discrete-mmse",
        weights="pool",
        task="task-diversity",
        task_args={"dim": 3, "examples": 5, "tasks": 1},
        dtype="float64",
        eval_prompts=64,
        shift=["latent"],
        out=tmp_path,
    )
    assert record.spec.origin == "constructed"
    assert record.metrics["squared_error"].mean < 1e-28
    assert record.floor["squared_error"].mean < 1e-28
    latent = record.evaluations["latent"].metrics
    # Two independent weights differ by 2D = 6 in expectation, here those of one pool.
    assert latent["squared_error"].mean > 1.0
    assert latent["dmmse_distance"].mean < 1e-28


def test_the_published_learning_rate_peaks_where_the_source_s_does():
    recipe = load_task("task-diversity").recipes["paper"]
    rates = [recipe.learning_rate * learning_rate_factor(recipe, step)
             for step in range(0, recipe.steps, 500)]  # fmt: skip
    assert max(rates) == pytest.approx(1e-3, rel=1e-4)
    assert rates.index(max(rates)) / len(rates) == pytest.approx(0.42, abs=0.005)


def test_the_model_can_be_trained(tmp_path):
    record = run(
        model="discrete-mmse",
        model_args={"tasks": 4},
        task="task-diversity",
        recipe="smoke",
        seeds=2,
        eval_prompts=16,
        out=tmp_path,
    )
    assert record.parameters == 4 * 3
    assert record.spec.origin == "trained"


def test_a_pool_is_needed_to_construct_the_model():
    architecture = host().load("model", "discrete-mmse", object)()
    assert isinstance(architecture.constructions["pool"], FromPool)
    for task, message in ((task_of(tasks=0), "ridge is the Bayes predictor"),
                          (load_task("ridge"), "has no pool of weights")):  # fmt: skip
        with pytest.raises(UsageError, match=message):
            architecture.constructions["pool"].build(task.signature, None, task)
    for noise in (0.0, 9e-4):
        with pytest.raises(UsageError, match="noise"):
            task_of(noise=noise)
    # With the least noise, the distance of ridge's exact answer from ridge is rounding.
    task = task_of(noise=1e-3, tasks=0)
    (batch,) = task.evaluation_batches(64, 0, torch.float64)
    exact = task.reference(batch)
    assert task.metrics(exact, batch)["ridge_distance"].max() < 1e-12
    reason = architecture.supports(load_task("least-squares").signature, None)
    assert reason == "it answers every prefix of examples (x, y)"
