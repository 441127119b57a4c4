"""Methods of tasks that return another form, or change what they are given."""

from __future__ import annotations

import pytest
import torch

from iclbench import ConformanceError
from iclbench.kit.methods import check_methods
from iclbench_least_squares.fixed import LeastSquares


class IgnoresCount(LeastSquares):
    def draw(self, random):
        return {**super().draw(random), "w": torch.randn(4, 1, 1)}


class IgnoresRandom(LeastSquares):
    def draw(self, random):
        draws = super().draw(random)
        return {**draws, "w": torch.randn_like(draws["w"])}


class ChangesDraws(LeastSquares):
    def arrange(self, draws):
        draws["x"].mul_(2)
        return super().arrange(draws)


class ChangesTargets(LeastSquares):
    def metrics(self, prediction, batch):
        values = super().metrics(prediction, batch)
        batch.target.zero_()
        return values


class ChangesPrompts(LeastSquares):
    floor_kind = "bayes"

    def reference(self, batch):
        batch.prompt.x.zero_()
        return batch.target


class Scalar(LeastSquares):
    def metrics(self, prediction, batch):
        return {"squared_error": (prediction - batch.target).square().mean()}


class Single(LeastSquares):
    def metrics(self, prediction, batch):
        return {name: values.float() for name, values in super().metrics(prediction, batch).items()}


class List(LeastSquares):
    def metrics(self, prediction, batch):
        return list(super().metrics(prediction, batch).values())


class Infinite(LeastSquares):
    def loss(self, prediction, target):
        return prediction.square().flatten(1).mean(1).log()


class InfiniteElsewhere(LeastSquares):
    def loss(self, prediction, target):
        return prediction.flatten(1).mean(1).sqrt()


class Fraction(LeastSquares):
    fractions = frozenset({"squared_error"})


@pytest.fixture
def config():
    return LeastSquares.Config(dim=2, examples=3)


def test_a_sound_task_passes(config):
    check_methods(LeastSquares(config))


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (IgnoresCount, r"draw.. gives w of shape \(4, 1, 1\) for 8 prompts; its first dimension"),
        (IgnoresRandom, "draw.. gives another w the second time; take numbers from `random`"),
        (ChangesDraws, "arrange.. changes x in place; it must change a copy"),
        (ChangesTargets, "metrics.. changes target in place"),
        (ChangesPrompts, "reference.. changes x in place"),
        (Scalar, r"metrics.. must give squared_error as \(B,\).*; its shape is \(\)"),
        (Single, "metrics.. gives squared_error in torch.float32, not float64"),
        (List, "metrics.. returns a list, not"),
        (Infinite, "loss.. is not finite for a prediction of zeros"),
        (InfiniteElsewhere, "loss.. is not finite for an untrained model's prediction"),
        (Fraction, "metric squared_error is among `fractions` and not between 0 and 1 for"),
    ],
)
def test_a_method_that_breaks_its_promise_is_named(config, task, reason):
    with pytest.raises(ConformanceError, match=reason):
        check_methods(task(config))
