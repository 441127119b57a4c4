"""The metrics alignment and iterates detect gradient descent, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import evaluation_context
from torch import nn

from iclbench import Architecture, UsageError, host, run
from iclbench_least_squares.fixed import FixedConfig, LeastSquares
from iclbench_least_squares.prefixes import LeastSquaresPrefixes
from iclbench_least_squares.problems import LeastSquaresConfig
from iclbench_least_squares.ridge import RidgeConfig, RidgeRegression
from iclbench_solvers.alignment import SHOWN, STEPS, Alignment, Descent, fit, sensitivity
from iclbench_solvers.iterates import Iterates
from iclbench_solvers.iterative import GradientDescent, GradientDescentConfig
from iclbench_solvers.simple import Averaging
from iclbench_solvers.solver import examples_of

CONTEXT = evaluation_context()


def descent(task, **config):
    arguments = GradientDescentConfig(**config)
    return GradientDescent().build(task.signature, arguments)


def aligned(model, task, dtype=torch.float64, n=100):
    (batch,) = task.evaluation_batches(n, 0, dtype)
    with torch.no_grad():
        return Alignment().compute(model, task, batch, CONTEXT)


@pytest.mark.parametrize("steps", [1, 3, 7])
@pytest.mark.parametrize("factor", [0.3, 0.77])
def test_gradient_descent_is_identified_with_its_step_size(steps, factor):
    task = LeastSquares(FixedConfig())
    values = aligned(descent(task, steps=steps, step_size=factor), task)
    assert (values["alignment_steps"] == steps).all()
    assert values["alignment_step_size"].mean() == pytest.approx(factor, rel=1e-5)
    assert values["alignment_distance"].max() < 1e-6
    assert values["alignment_cosine"].min() > 1 - 1e-9


def test_gradient_descent_is_identified_on_prefixes_and_on_ridge():
    for task, config in (
        (LeastSquaresPrefixes(LeastSquaresConfig()), {"step_size": 0.5}),
        (RidgeRegression(RidgeConfig()), {"step_size": "prompt", "normalize": "sum"}),
    ):
        values = aligned(descent(task, steps=4, **config), task)
        assert (values["alignment_steps"] == 4).all()
        # Exactly, on any processor: an interval of values above 1 is another than that of a 1.
        step_size = 1.0 if config["step_size"] == "prompt" else 0.5
        assert (values["alignment_step_size"] == step_size).all()
        assert values["alignment_distance"].max() < 1e-6


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
def test_predictions_that_are_not_finite_align_with_nothing(value):
    task = LeastSquares(FixedConfig())
    values = aligned(Constant(value), task)
    assert values["alignment_steps"].isnan().all()
    assert values["alignment_step_size"].isnan().all()


class Constant(nn.Module):
    def __init__(self, value):
        super().__init__()
        self.value = value

    def forward(self, prompt):
        return torch.full((len(prompt.x), 1, 1), self.value, dtype=prompt.x.dtype)


class Rounded(nn.Module):
    """A model on another processor: its predictions differ by the rounding of float32."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, prompt):
        y = self.model(prompt)
        generator = torch.Generator().manual_seed(0)
        return y * (1 + 1e-7 * torch.randn(y.shape, generator=generator, dtype=y.dtype))


def test_fit_is_the_same_on_another_processor():
    task = LeastSquares(FixedConfig())
    averaging = Averaging().build(task.signature, Averaging.Config())
    with torch.no_grad():
        here = fit(averaging, task, torch.float64, CONTEXT)
        there = fit(Rounded(averaging), task, torch.float64, CONTEXT)
    assert there.best == here.best
    np.testing.assert_allclose(there.factors, here.factors, rtol=1e-5)


def test_curve_covers_few_and_many_steps():
    task = LeastSquares(FixedConfig())
    values = aligned(descent(task, steps=2, step_size=0.5), task)
    curve = values["alignment_by_steps"]
    assert curve.shape == (100, len(SHOWN))
    assert curve.mean(dim=0).argmin() == 1
    assert torch.equal(curve[:, 1], values["alignment_distance"])


class Opposite(nn.Module):
    def forward(self, prompt):
        return -prompt.query @ (prompt.x.mT @ prompt.y) / 20


def test_other_models_are_far_from_gradient_descent():
    task = LeastSquares(FixedConfig())
    values = aligned(Opposite(), task)
    assert values["alignment_cosine"].max() < 0
    assert values["alignment_distance"].mean() > 1


def test_descent_in_the_eigenbasis_equals_gradient_descent():
    for task in (LeastSquares(FixedConfig(dim=4, examples=3)), RidgeRegression(RidgeConfig())):
        (batch,) = task.evaluation_batches(8, 0, torch.float64)
        examples = examples_of(batch.prompt)
        unit = 1 / 3 if examples.step is None else examples.step
        x, y = examples.x, examples.y
        w = torch.zeros(8, x.shape[2], 1, dtype=torch.float64)
        for values in Descent(batch.prompt).weights(0.7, 9):
            ridge = 0 if examples.ridge is None else examples.ridge
            w = w - 0.7 * unit * (x.mT @ (x @ w - y) + ridge * w)
            torch.testing.assert_close(values, w[..., 0], rtol=1e-9, atol=1e-12)


def test_sensitivities_are_the_weights_of_a_linear_predictor():
    task = LeastSquares(FixedConfig())
    model = descent(task, steps=5, step_size=0.4)
    (batch,) = task.evaluation_batches(50, 0, torch.float64)
    with torch.no_grad():
        values = sensitivity(model, task, batch, CONTEXT)
    w = GradientDescent().weights(examples_of(batch.prompt), model.config)
    torch.testing.assert_close(values, w[..., 0])


@pytest.mark.parametrize("model", ["transformer", "nearest-neighbours", "zero"])
def test_metric_applies_to_any_regression_model(tmp_path, model):
    arguments = {"recipe": "smoke", "seeds": 2} if model == "transformer" else {}
    record = run(
        model=model,
        task="least-squares",
        metrics=("alignment",),
        eval_prompts=64,
        out=tmp_path,
        **arguments,
    )
    assert 1 <= record.metrics["alignment_steps"].median <= STEPS
    assert record.curves["alignment_by_steps"].values == list(SHOWN)
    assert record.metrics["alignment_cosine"].mean is not None


def test_iterates_of_gradient_descent_are_at_the_floor(tmp_path):
    record = run(
        model="gradient-descent",
        task="ridge",
        model_args={"steps": 6, "step_size": "prompt", "normalize": "sum"},
        metrics=("iterates",),
        eval_prompts=64,
        out=tmp_path,
    )
    curve, floor = record.curves["iterate_error"], record.main.floor.curves["iterate_error"]
    assert curve == floor
    assert curve.values == list(range(7))
    assert curve.max[0] == 0
    assert 0 < max(curve.max) < 1e-11


def test_iterates_with_another_step_size_differ(tmp_path):
    record = run(
        model="gradient-descent",
        task="ridge",
        model_args={"steps": 6, "step_size": 0.01, "normalize": "sum"},
        metrics=("iterates",),
        eval_prompts=64,
        out=tmp_path,
    )
    assert record.curves["iterate_error"].median[3] > 1e-4


def test_unsupported_models_and_tasks_are_refused_before_the_run(tmp_path):
    with pytest.raises(UsageError, match="shows no trajectory"):
        run(model="transformer", task="ridge", metrics=("iterates",), out=tmp_path)
    with pytest.raises(UsageError, match="needs ridge, step, which the task's prompts lack"):
        run(model="lsa", task="least-squares", metrics=("iterates",), out=tmp_path)
    with pytest.raises(UsageError, match="asks for one value"):
        run(
            model="zero",
            task="least-squares",
            task_args={"target": "weights"},
            metrics=("alignment",),
            out=tmp_path,
        )
    assert not list(tmp_path.glob("**/*.json"))


def test_iterates_need_a_step_size():
    assert Iterates().supports(RidgeRegression(RidgeConfig())) is None
    reason = Iterates().supports(LeastSquares(FixedConfig()))
    assert reason == "it needs ridge, step, which the task's prompts lack"


def test_model_without_finite_predictions_has_no_fit():
    def broken(prompt):
        return torch.full_like(prompt.query[..., :1], torch.nan)

    values = aligned(broken, RidgeRegression(RidgeConfig()), n=8)
    assert all(values.isnan().all() for values in values.values())


@pytest.mark.parametrize(("name", "flat"), [("lasso", False), ("two-layer-network", False),
                                            ("boosted-trees", True)])  # fmt: skip
def test_the_sensitivity_of_a_fitted_solver_is_the_slope_of_its_answer(name, flat):
    task = LeastSquares(FixedConfig(dim=3, examples=8))
    (batch,) = task.evaluation_batches(8, 0, torch.float64 if not flat else torch.float32)
    solver = host().load("model", name, Architecture)()
    model = solver.build(task.signature, solver.Config())
    with torch.no_grad():
        slopes = sensitivity(model, task, batch, CONTEXT)
        step = torch.zeros_like(batch.prompt.query)
        step[..., 1] = 1e-5
        ends = [model(task.with_query(batch.prompt, batch.prompt.query + s * step))[:, -1, 0]
                for s in (1, -1)]  # fmt: skip
    expected = (ends[0] - ends[1]).double() / 2e-5
    torch.testing.assert_close(slopes[:, 1], expected, rtol=1e-4, atol=1e-6)
    assert bool((slopes == 0).all()) is flat
