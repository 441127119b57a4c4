"""Schedules, the adaptive learning rate, and the running mean of gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small import ADAPTIVE, Noisy, Small, same, trained, training
from torch import nn

from iclbench import Recipe, UsageError
from iclbench.api.recipe import Stage
from iclbench.training.schedules import (
    AdaptiveRate,
    fit_schedule,
    learning_rate_factor,
    measuring_share,
    require_used,
)


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


def test_warm_up_is_linear_and_multiplies_the_schedule():
    recipe = Recipe(steps=50, batch=1, warmup=4)
    factors = [learning_rate_factor(recipe, step) for step in range(6)]
    assert factors == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    cosine = Recipe(steps=4, batch=1, schedule="cosine", warmup=4)
    assert learning_rate_factor(cosine, 2) == pytest.approx(0.75 * 0.5)


@pytest.mark.parametrize("model", [Small, Noisy])
def test_measuring_the_cosine_does_not_affect_training(model):
    """With a decay of 1 the adaptive schedule equals the constant one, to the bit.

    A model with dropout draws from its own streams in the measuring passes too.
    """
    constant = trained([1, 2], cls=model, gradient_memory=0.9, chunk=1)
    measured = trained([1, 2], cls=model, **{**ADAPTIVE, "decay": 1.0})
    assert constant.curve == measured.curve
    assert same(constant, measured)


@pytest.mark.parametrize(("threshold", "factor"), [(-1.0, 0.9**5), (1.0, 0.9**-5)])
def test_adaptive_rate_falls_if_gradients_agree_and_rises_otherwise(threshold, factor):
    trainer = training([1, 2], **ADAPTIVE, cosine_threshold=threshold)
    trainer.adaptive.cosine *= 0.99  # the running mean starts at 1, not at a measurement
    trainer.run(None, lambda step, loss: None)
    assert trainer.adaptive.factor.tolist() == pytest.approx([factor, factor])


def test_running_cosine_compares_consecutive_fresh_gradients():
    trainer = training([1, 2], **ADAPTIVE, cosine_memory=0.5)
    measured = []
    measure = trainer.measure

    def spy(batches):
        measured.append(list(measure(batches)))
        return measured[-1]

    trainer.measure = spy
    trainer.run(None, lambda step, loss: None)
    expected = torch.ones(2, dtype=torch.float64)
    for gradients in measured:
        a, b, c = gradients
        cosines = [torch.nn.functional.cosine_similarity(*p, dim=1) for p in ((a, b), (b, c))]
        expected = 0.5 * expected + 0.5 * (cosines[0] + cosines[1]) / 2
    assert len(measured) == 7
    torch.testing.assert_close(trainer.adaptive.cosine, expected)


def test_the_cosine_of_tiny_gradients_is_not_rounded_to_zero():
    recipe = Recipe(steps=8, batch=1, **ADAPTIVE | {"cosine_memory": 0.0})
    adaptive = AdaptiveRate(recipe, 2, torch.device("cpu"))
    gradients = torch.tensor([[3e-12, 4e-12], [0.0, 0.0]])
    adaptive.advance(4, lambda _: [gradients, gradients * torch.tensor([1.0, 0.0]), gradients])
    torch.testing.assert_close(adaptive.cosine, torch.tensor([0.6, 0.0], dtype=torch.float64))


def test_one_zero_gradient_hides_no_other_cosine():
    recipe = Recipe(steps=8, batch=1, **ADAPTIVE | {"cosine_memory": 0.0})
    adaptive = AdaptiveRate(recipe, 2, torch.device("cpu"))
    ones = torch.ones(2, 3)
    gradients = [ones, ones, ones, ones * torch.tensor([[1.0], [0.0]])]
    adaptive.advance(4, lambda _: gradients)
    torch.testing.assert_close(adaptive.cosine, torch.tensor([1.0, 2 / 3], dtype=torch.float64))


def test_replicas_adapt_independently():
    together = training([1, 2], **ADAPTIVE, cosine_threshold=0.97)
    together.run(None, lambda step, loss: None)
    for r, seed in enumerate([1, 2]):
        alone = training([seed], **ADAPTIVE, cosine_threshold=0.97)
        alone.run(None, lambda step, loss: None)
        torch.testing.assert_close(alone.adaptive.cosine[0], together.adaptive.cosine[r])
        torch.testing.assert_close(alone.adaptive.factor[0], together.adaptive.factor[r])


def test_mean_of_gradients_is_added_to_them():
    """SGD by hand on one replica with g + λ·mean, where the mean starts as the first gradient."""
    recipe = {"optimizer": "sgd", "gradient_memory": 0.8, "gradient_weight": 2.0, "chunk": 1}
    trainer = training([1], steps=4, **recipe)
    flat, mean, results = trainer.replicas.flat.clone(), None, []
    program = trainer.program

    def spy(batch):
        results.append(program(batch))
        return results[-1]

    trainer.program = spy
    spy.name = "spy"
    trainer.run(None, lambda step, loss: None)
    for _, grad in results:
        mean = grad if mean is None else 0.8 * mean + 0.2 * grad
        flat = flat - 1e-2 * (grad + 2.0 * mean)
    torch.testing.assert_close(trainer.replicas.flat, flat)


@pytest.mark.parametrize("schedule", ["constant", "step", "cosine"])
def test_a_schedule_fits_the_steps(schedule):
    """Scaled to ten times the steps, it has the same factor at the same part of the training."""
    short = Recipe(
        steps=100, batch=1, schedule=schedule, warmup=10, decay_every=20, schedule_steps=100
    )
    long = fit_schedule(short, 1000)
    assert (long.steps, long.warmup, long.decay_every) == (1000, 100, 200)
    for step in (0, 5, 10, 30, 50, 99):
        factors = [learning_rate_factor(fit_schedule(short, 100), step),
                   learning_rate_factor(long, 10 * step)]  # fmt: skip
        # The warm-up starts with a step's part, which is smaller in the longer training.
        part = (10 * step + 1) / (10 * step + 10) if step < 10 else 1.0
        assert factors[1] == pytest.approx(part * factors[0], abs=1e-9)
    assert learning_rate_factor(long, 999) < 1.0 or schedule == "constant"


@pytest.mark.parametrize("steps", [3, 10, 30, 300, 999, 1000, 50_000])
def test_a_curriculum_takes_its_part_of_any_number_of_steps(steps):
    """Each stage ends where it ends in proportion; of a short training, some take no step."""
    stages = [Stage(steps=5, task_args={"dim": dim}) for dim in range(1, 13)]
    recipe = Recipe(steps=1000, batch=1, stages=stages, schedule_steps=1000)
    fitted = fit_schedule(recipe, steps).stages
    assert sum(stage.steps for stage in fitted) == round(0.06 * steps)
    assert [s.task_args["dim"] for s in fitted] == sorted({s.task_args["dim"] for s in fitted})
    if steps >= 1000:
        ends = np.cumsum([stage.steps for stage in fitted])
        assert ends == pytest.approx(np.arange(1, 13) * 0.005 * steps, abs=0.51)


def test_a_schedule_without_a_length_is_not_scaled():
    recipe = Recipe(steps=100, batch=1, warmup=10, decay_every=20, measure_every=7)
    assert fit_schedule(recipe, 1000) == recipe.model_copy(update={"steps": 1000})


def test_no_steps_need_no_scale():
    recipe = Recipe(steps=0, batch=1, schedule="adaptive", schedule_steps=100)
    assert fit_schedule(recipe, 0).steps == 0


def test_a_short_adaptive_training_spends_at_most_a_tenth_on_measuring():
    recipe = Recipe(steps=10**6, batch=1, schedule="adaptive", schedule_steps=10**6)
    assert measuring_share(recipe) == 8 / 1000
    fitted = fit_schedule(recipe, 1000)
    assert measuring_share(fitted) == 0.1
    assert fitted.decay_every == 10
    often = recipe.model_copy(update={"measure_every": 4})
    assert measuring_share(fit_schedule(often, 1000)) == 2.0
    assert measuring_share(fit_schedule(Recipe(steps=5, batch=1), 5)) == 0.0


def factors(recipe, cosine):
    """The factor of the rate at its changes, where every measured cosine is this one."""
    rate = AdaptiveRate(recipe, 1, torch.device("cpu"))
    # Two vectors with this cosine, in turn: so have all consecutive ones.
    first = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    second = torch.tensor([[cosine, (1 - cosine**2) ** 0.5]], dtype=torch.float64)
    found = []
    for step in range(1, recipe.steps // 20):
        if step % recipe.measure_every == 0 or step % recipe.decay_every == 0:
            rate.advance(step, lambda count: [first if i % 2 else second for i in range(count)])
            found.append(float(rate.factor))
    return found


@pytest.mark.parametrize("steps", [20_000, 50_000, 250_000])
def test_a_short_adaptive_training_adapts_as_a_long_one(steps):
    """The running mean reaches back as far, though it is measured more rarely."""
    recipe = Recipe(steps=2_500_000, batch=1, schedule="adaptive", decay_every=3_000,
                    schedule_steps=2_500_000)  # fmt: skip
    long, short = factors(recipe, 0.8), factors(fit_schedule(recipe, steps), 0.8)
    assert min(short) == pytest.approx(min(long), rel=0.11)
    assert short[-1] == pytest.approx(long[-1], rel=0.25)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decay": 0.5}, "decay is for schedule=step or adaptive, not cosine"),
        ({"measure_batches": 64}, "measure_batches is for schedule=adaptive, not cosine"),
        ({"gradient_weight": 9.0}, "gradient_weight needs gradient_memory"),
        ({"schedule": "constant", "schedule_steps": 9}, "schedule_steps needs a schedule"),
        ({"schedule": "constant", "schedule_steps": 9, "warmup": 2}, None),
        ({"schedule_steps": 9}, None),
        ({"decay": 0.9}, None),
        ({"schedule": "step", "decay": 0.5}, None),
        ({"gradient_memory": 0.9, "gradient_weight": 9.0}, None),
    ],
)
def test_an_argument_that_has_no_effect_is_refused(changes, message):
    named = Recipe(steps=10, batch=1, schedule="cosine")
    recipe = named.model_copy(update=changes)
    if message is None:
        require_used(recipe, named)
    else:
        with pytest.raises(UsageError, match=message):
            require_used(recipe, named)
