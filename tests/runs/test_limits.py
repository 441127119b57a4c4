"""The limits of errors: correct rounding below, and a thousand root mean squares above."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from iclbench import EvaluationContext, load_task
from iclbench.runs.evaluate import evaluate
from iclbench.runs.limits import Limits

CONTEXT = EvaluationContext(torch.device("cpu"), torch.Generator(), None, 5)
DTYPES = [torch.float32, torch.float64]
#: Tasks with errors that are measured against other numbers than the target.
TASKS = {
    "least-squares": {},
    "least-squares-prefixes": {"dim": 2, "examples": 4},
    "least-squares-features": {"dim": 2, "examples": 4},
    "gradient": {"dim": 2, "examples": 4, "iterates": 3},
    "gradient-steps": {"dim": 2, "examples": 4},
    "ridge": {"dim": 2, "examples": 4},
    "linear-system": {"sizes": "2-3"},
    "square": {"dim": 2, "length": 3},
}


class Off(nn.Module):
    """Predicts the target, rounded to the prompt's dtype, plus an offset."""

    def __init__(self, batches, offset):
        super().__init__()
        self.targets = {len(b.target[0, 0]): b.target for b in batches}
        self.offset, self.asked = offset, {}

    def forward(self, prompt):
        width = self.width(prompt)
        start = self.asked.get(width, 0)
        self.asked[width] = start + len(prompt[0])
        target = self.targets[width][start : self.asked[width]].to(prompt[0].dtype)
        return self.offset(target)

    def width(self, prompt):
        return prompt.a.shape[1] if hasattr(prompt, "a") else next(iter(self.targets))


def half_units(values, dtype):
    """Half a unit in the last place of |value|; at least ε/√8 of the root mean square."""
    numpy_dtype = np.float32 if dtype == torch.float32 else np.float64
    largest = np.abs(values)
    down = largest.astype(numpy_dtype)
    down = np.where(down > largest, np.nextafter(down, numpy_dtype(0)), down)
    least = np.finfo(numpy_dtype).eps.astype(np.float64) / np.sqrt(8 / np.mean(values**2))
    return np.maximum(np.spacing(down).astype(np.float64) / 2, least)


def measured(task, dtype, offset, n=12):
    batches = task.evaluation_batches(n, 0, dtype)
    return evaluate(task, Off(batches, offset), batches, CONTEXT, []), batches


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_error_is_below_half_a_unit(dtype):
    task = load_task("least-squares")
    values, (batch,) = measured(task, dtype, lambda target: target)
    least = half_units(batch.target[:, 0, 0].numpy(), dtype) ** 2
    np.testing.assert_allclose(values["squared_error"], least, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_larger_errors_are_not_changed(dtype):
    task = load_task("least-squares")
    for units in (2, 1000):

        def moved(target, units=units):
            return target + units * torch.finfo(dtype).eps * target.abs().clamp(min=4.0)

        values, (batch,) = measured(task, dtype, moved)
        prediction = moved(batch.target.to(dtype)).double()
        exact = task.metrics(prediction, batch)["squared_error"]
        np.testing.assert_array_equal(values["squared_error"], exact)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "args"), TASKS.items(), ids=str)
def test_every_error_of_every_task_has_limits(name, args, dtype):
    task = load_task(name, **args)
    batches = task.evaluation_batches(6, 0, dtype)
    eps = torch.finfo(dtype).eps
    for batch in batches:
        limits = Limits.of(task, batch)
        metrics = set(task.floor(batch, CONTEXT)) & set(task.errors)
        assert set(limits.least) == set(limits.lost) == metrics
        for metric, least in limits.least.items():
            power = 2 if task.errors[metric] == "squared" else 1
            ratio = (limits.lost[metric] / least) ** (1 / power)
            # The distances are 10³ root mean squares, and at least ε/4 of one.
            assert (least > 0).all()
            assert (ratio <= 1e3 * 4 / eps * 1.001).all()
            assert (ratio > 1e3 / eps / 1e3).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("lost", [torch.nan, torch.inf, -torch.inf, 1e30, -1e6])
def test_a_prediction_that_is_lost_counts_as_a_thousand_root_mean_squares(dtype, lost):
    task = load_task("least-squares")

    def fails_once(target):
        return torch.where(torch.arange(len(target))[:, None, None] == 1, lost, target)

    values, (batch,) = measured(task, dtype, fails_once, n=5)
    expected = 1e6 * float(batch.target.square().mean())
    assert values["squared_error"][1] == pytest.approx(expected)
    assert (values["squared_error"][[0, 2, 3, 4]] < 1e-12).all()


@pytest.mark.parametrize(("name", "args"), TASKS.items(), ids=str)
def test_every_error_stays_finite(name, args):
    task = load_task(name, **args)
    batches = task.evaluation_batches(6, 0, torch.float32)

    class Lost(nn.Module):
        def forward(self, prompt):
            width = prompt.a.shape[1] if hasattr(prompt, "a") else task.signature.output_width
            return torch.full((len(prompt[0]), len(task.signature.readout), width), torch.nan)

    values = evaluate(task, Lost(), batches, CONTEXT, [])
    measured_errors = task.errors.keys() & values.keys()
    assert measured_errors
    assert all(np.isfinite(values[metric]).all() for metric in measured_errors)


def test_only_the_lost_prefix_counts_as_lost():
    task = load_task("least-squares-prefixes", dim=2, examples=4)

    def fails_at_two(target):
        return torch.where(torch.arange(5)[None, :, None] == 2, torch.nan, target)

    values, (batch,) = measured(task, torch.float32, fails_at_two, n=5)
    lost = 1e6 * float(batch.target.square().mean())
    assert values["prefix_error"][:, 2] == pytest.approx([lost] * 5)
    assert (values["prefix_error"][:, [0, 1, 3, 4]] < 1e-12).all()
    assert (values["squared_error"] < 1e-12).all()


def test_a_prediction_just_within_the_limit_is_not_changed():
    task = load_task("least-squares")
    values, (batch,) = measured(task, torch.float64, lambda target: target + 900.0, n=64)
    assert float(batch.target.square().mean()) > 1  # the limit is beyond 1,000
    np.testing.assert_allclose(values["squared_error"], 900.0**2)


def test_the_floor_does_not_jump_where_the_targets_pass_a_power_of_two():
    task = load_task("least-squares")
    (batch,) = task.evaluation_batches(64, 0, torch.float32)
    ones = torch.ones_like(batch.target).where(torch.arange(64)[:, None, None] < 32, 0.5)
    least = [
        Limits.of(task, batch._replace(target=ones * size)).least["squared_error"]
        for size in (1.26, 1.27)  # root mean squares on both sides of 1
    ]
    small = [values[32:] / values[32] for values in least]
    assert all((values == 1).all() for values in small)
    assert (least[1][32] / least[0][32]) == pytest.approx((1.27 / 1.26) ** 2)


def test_errors_from_targets_of_zero_have_no_upper_limit():
    limits = Limits({"e": torch.zeros(2)}, {"e": torch.zeros(2)})
    assert limits.apply({"e": torch.tensor([0.5, 1e30])})["e"].tolist() == pytest.approx(
        [0.5, 1e30]
    )


def test_limits_leave_padding_and_zero_targets_alone():
    task = load_task("least-squares")
    (batch,) = task.evaluation_batches(4, 0, torch.float32)
    zero = batch._replace(target=torch.zeros_like(batch.target))
    assert (Limits.of(task, zero).least["squared_error"] == 0).all()
    padded = torch.tensor([[[1.0, torch.nan]]], dtype=torch.float64)
    distances = []
    task.errors_at = lambda batch, distance: distances.append(distance(padded)) or {}
    Limits.of(task, batch)
    half_unit, far = distances
    assert half_unit[0, 0, 0] == 2.0**-24
    assert far[0, 0, 0] == 1e3


def test_classes_have_no_limits_and_a_logit_of_nan_is_wrong():
    task = load_task("categorical", examples=4)
    (batch,) = task.evaluation_batches(3, 0, torch.float32)
    assert Limits.of(task, batch) == Limits({}, {})
    logits = torch.zeros(3, 1, 25, dtype=torch.float64)
    logits.scatter_(2, batch.target.unsqueeze(2), torch.nan)
    metrics = task.metrics(logits, batch)
    assert metrics["accuracy"].tolist() == [0, 0, 0]
    assert metrics["nll"].isnan().all()
