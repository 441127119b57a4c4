"""Schedules, the adaptive learning rate, and the running mean of gradients."""

from __future__ import annotations

import pytest
import torch
from small import ADAPTIVE, new_training, same, trained
from torch import nn

from iclbench import Recipe
from iclbench.training.schedules import learning_rate_factor


@pytest.mark.parametrize("schedule", ["constant", "step", "cosine"])
def test_schedules_match_torch(schedule):
    recipe = Recipe(steps=50, batch=1, schedule=schedule, decay_every=7, decay=0.8)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = {
        "constant": torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0),
        "step": torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.8),
        "cosine": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50),
    }[schedule]
    for step in range(50):
        assert learning_rate_factor(recipe, step) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()


def test_warm_up_is_linear():
    recipe = Recipe(steps=50, batch=1, warmup=4)
    factors = [learning_rate_factor(recipe, step) for step in range(6)]
    assert factors == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_measuring_the_cosine_does_not_affect_training_data():
    """With a decay of 1 the adaptive schedule equals the constant one, to the bit."""
    constant = trained([1, 2], gradient_memory=0.9, chunk=1)
    measured = trained([1, 2], **{**ADAPTIVE, "decay": 1.0})
    assert constant.curve == measured.curve
    assert same(constant, measured)


@pytest.mark.parametrize(("threshold", "factor"), [(-1.0, 0.9**5), (1.0, 0.9**-5)])
def test_adaptive_rate_falls_if_gradients_agree_and_rises_otherwise(threshold, factor):
    training = new_training([1, 2], **ADAPTIVE, cosine_threshold=threshold)
    training.adaptive.cosine *= 0.99  # the running mean starts at 1, not at a measurement
    training.run(None, lambda step, loss: None)
    assert training.adaptive.factor.tolist() == pytest.approx([factor, factor])


def test_running_cosine_compares_consecutive_fresh_gradients():
    training = new_training([1, 2], **ADAPTIVE, cosine_memory=0.5)
    measured = []
    measure = training.measure

    def spy(batches):
        measured.append(measure(batches))
        return measured[-1]

    training.measure = spy
    training.run(None, lambda step, loss: None)
    expected = torch.ones(2, dtype=torch.float64)
    for gradients in measured:
        a, b, c = gradients
        cosines = [torch.nn.functional.cosine_similarity(*p, dim=1) for p in ((a, b), (b, c))]
        expected = 0.5 * expected + 0.5 * (cosines[0] + cosines[1]) / 2
    assert len(measured) == 7
    torch.testing.assert_close(training.adaptive.cosine, expected)


def test_replicas_adapt_independently():
    together = new_training([1, 2], **ADAPTIVE, cosine_threshold=0.97)
    together.run(None, lambda step, loss: None)
    for r, seed in enumerate([1, 2]):
        alone = new_training([seed], **ADAPTIVE, cosine_threshold=0.97)
        alone.run(None, lambda step, loss: None)
        torch.testing.assert_close(alone.adaptive.cosine[0], together.adaptive.cosine[r])
        torch.testing.assert_close(alone.adaptive.factor[0], together.adaptive.factor[r])


def test_mean_of_gradients_is_added_to_them():
    """SGD by hand on one replica with g + λ·mean, where the mean starts as the first gradient."""
    recipe = {"optimizer": "sgd", "gradient_memory": 0.8, "gradient_weight": 2.0, "chunk": 1}
    training = new_training([1], steps=4, **recipe)
    flat, mean, results = training.replicas.flat.clone(), None, []
    program = training.program

    def spy(batch):
        results.append(program(batch))
        return results[-1]

    training.program = spy
    spy.name = "spy"
    training.run(None, lambda step, loss: None)
    for _, grad in results:
        mean = grad if mean is None else 0.8 * mean + 0.2 * grad
        flat = flat - 1e-2 * (grad + 2.0 * mean)
    torch.testing.assert_close(training.replicas.flat, flat)
