"""BaseConv's constructions: exact primitives, gradient descent step by step, the gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iclbench import EvaluationContext, UsageError, load_task, run
from iclbench.precision import default_dtype
from iclbench.runs.values import Arithmetic
from iclbench_baseconv.architecture import BaseConv, BaseConvConfig
from iclbench_baseconv.constructions.descent import DescentConfig

CONTEXT = EvaluationContext(torch.device("cpu"), torch.Generator())


def build(name, task, dtype=torch.float64, **args):
    construction = BaseConv.constructions[name]
    config, state = construction.build(task.signature, construction.Config(**args), task)
    with default_dtype(dtype):
        model = BaseConv().build(task.signature, BaseConvConfig(**config))
    model.load_state_dict({key: value.to(dtype) for key, value in state.items()})
    return model.requires_grad_(False)


def score(name, task, dtype=torch.float64, n=64, **args):
    model = build(name, task, dtype, **args)
    (batch,) = task.evaluation_batches(n, 0, dtype)
    return task.evaluate(model, batch, CONTEXT)


@pytest.mark.parametrize("name", ["read", "affine", "multiply", "square"])
@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-11), (torch.float64, 1e-28)], ids=str
)
def test_primitives_are_exact_to_rounding_in_one_layer(name, dtype, bound):
    task = load_task(name)
    model = build(name, task, dtype)
    assert len(model.blocks) == 1
    assert score(name, task, dtype)["squared_error"].max() < bound


@given(seed=st.integers(0, 30), length=st.integers(2, 8), dim=st.integers(1, 4))
def test_read_in_any_order_needs_a_non_causal_model(seed, length, dim):
    task = load_task("read", dim=dim, length=length, order="any", task_seed=seed)
    assert score("read", task, n=4, causal=False)["squared_error"].max() < 1e-28
    if task.parameters["i"] > task.parameters["j"]:
        with pytest.raises(UsageError, match="a causal model can't copy row"):
            build("read", task)


def iterates(model, prompt, channels, every, skip):
    """Return w at the last position after the layers of each step."""
    weights = []
    x = model.embed(*prompt.sequence()) + model.positions
    for i, block in enumerate(model.blocks, start=1):
        x = block(x)
        if i > skip and (i - skip) % every == 0:
            weights.append(x[:, -1, channels])
    return weights


@pytest.mark.parametrize(("name", "every", "skip"), [("gd-causal", 1, 2), ("gd-non-causal", 3, 1)])
@given(
    dim=st.integers(1, 4),
    examples=st.integers(1, 8),
    steps=st.integers(1, 6),
    eta=st.sampled_from([0.1, 0.5]),
)
def test_descent_matches_gradient_descent_step_by_step(
    name, every, skip, dim, examples, steps, eta
):
    task = load_task("least-squares", dim=dim, examples=examples)
    (batch,) = task.evaluation_batches(5, 0, torch.float64)
    model = build(name, task, steps=steps, step_size=eta)
    d = dim
    start = d + 1 if name == "gd-non-causal" else 3 * d + 1 + 2 * d * d
    estimates = iterates(model, batch.prompt, slice(start, start + d), every, skip)[:steps]
    assert len(estimates) == steps
    x, y = batch.prompt.x, batch.prompt.y
    w = torch.zeros(5, d, 1, dtype=torch.float64)
    for estimate in estimates:
        w = w - eta / examples * x.mT @ (x @ w - y)
        torch.testing.assert_close(estimate, w[..., 0], rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(model(batch.prompt), batch.prompt.query @ w, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", ["gd-causal", "gd-non-causal"])
def test_constructions_also_predict_the_weights(name):
    task = load_task("least-squares", dim=3, examples=9, target="weights")
    metrics = score(name, task, steps=150, step_size=0.6)
    assert metrics["weight_error"].median() < 1e-12


@pytest.mark.parametrize("name", ["gd-causal", "gd-non-causal"])
def test_the_default_step_size_follows_the_shape_of_x(name):
    task = load_task("least-squares", dim=5, examples=20)
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    default, given = build(name, task, steps=3), build(name, task, steps=3, step_size=4 / 9)
    torch.testing.assert_close(default(batch.prompt), given(batch.prompt))


def test_fewer_prompts_diverge_with_the_default_step_size():
    """Gradient descent diverges where η is above 2/λmax: more often with η = 0.5."""
    task = load_task("least-squares", dim=3, examples=8)
    (batch,) = task.evaluation_batches(32768, 4321, torch.float64)
    values = torch.linalg.eigvalsh(batch.prompt.x.mT @ batch.prompt.x / 8)[:, -1]
    default, half = ((values > 2 / eta).double().mean() for eta in (DescentConfig().eta(8, 3), 0.5))
    assert half > 1e-3
    assert default < 2e-4


def test_square_is_not_read():
    with pytest.raises(UsageError, match="read has parameters"):
        build("square", load_task("read"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gd-causal", "gd-non-causal"])
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 2e-13), ("float64", 1e-27)])
def test_two_hundred_steps_reach_the_floor(tmp_path, name, dtype, bound):
    record = run(
        model="baseconv",
        task="least-squares",
        weights=name,
        weights_args={"steps": 200, "step_size": 0.5},
        dtype=dtype,
        eval_prompts=128,
        out=tmp_path,
    )
    assert record.spec.origin == "constructed"
    assert record.metrics["squared_error"].median <= bound


@pytest.mark.parametrize("features", [0, 1, 2])
@given(dim=st.integers(1, 4), examples=st.integers(1, 7))
def test_gradient_takes_one_pass(features, dim, examples):
    task = load_task("gradient", dim=dim, examples=examples, features=features, iterates=1)
    assert len(build("gradient", task).blocks) == (2 if features == 0 else 1)
    assert score("gradient", task, n=8)["gradient_error"].max() < 1e-24


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 2e-13), (torch.float64, 1e-29)], ids=str
)
def test_iterated_gradient_reaches_the_floor(dtype, bound):
    metrics = score("gradient", load_task("gradient"), dtype, n=128)
    assert metrics["weight_error"].median() <= bound


def test_additional_layers_and_width_do_not_affect_the_result():
    task = load_task("gradient", dim=2, examples=4, iterates=1)
    (batch,) = task.evaluation_batches(8, 0, torch.float64)
    plain, wide = build("gradient", task), build("gradient", task, layers=4, width=64)
    torch.testing.assert_close(plain(batch.prompt), wide(batch.prompt), rtol=0, atol=1e-14)
    assert len(wide.blocks) == 4


def test_constructed_first_layers_can_be_frozen_while_the_rest_is_trained(tmp_path):
    record = run(
        model="baseconv",
        task="gradient",
        task_args={"dim": 2, "examples": 4, "iterates": 2},
        init="gradient",
        weights_args={"layers": 3, "constructed": 1, "width": 24},
        freeze=("embed.*", "positions", "blocks.0.*"),
        recipe="smoke",
        seeds=2,
        eval_prompts=32,
        out=tmp_path,
    )
    assert record.spec.model_args["layers"] == 3
    assert record.spec.model_args["width"] == 24
    assert record.training.replicas == 2


@pytest.mark.parametrize(
    ("construction", "task", "message"),
    [
        ("read", "affine", "has no i and no j"),
        ("affine", "square", "has no h"),
        ("multiply", "square", "twice as wide"),
        ("square", "multiply", "as wide as outputs"),
        ("square", "read", "read has parameters"),
        ("gd-causal", "least-squares-prefixes", "N examples"),
        ("gd-causal", "gradient", "answers query or weights"),
        ("gd-non-causal", "ridge", "N examples"),
        ("gradient", "least-squares", "does not ask for a gradient"),
    ],
)
def test_unsuitable_task_is_refused_with_a_reason(construction, task, message):
    with pytest.raises(UsageError, match=message):
        build(construction, load_task(task))


def test_too_few_layers_or_channels_are_refused():
    task = load_task("gradient")
    with pytest.raises(UsageError, match="needs 2 layers"):
        build("gradient", task, layers=1)
    with pytest.raises(UsageError, match="constructed must not be more than the 2 layers"):
        build("gradient", task, constructed=3)
    with pytest.raises(UsageError, match="needs a width of 41"):
        build("gradient", task, width=40)


def test_rounding_is_within_the_tolerance_of_the_attainable_error(tmp_path):
    """In float64, the exact answer is the target; the construction has more error than that."""
    record = run(
        model="baseconv",
        task="affine",
        weights="affine",
        dtype="float64",
        eval_prompts=16,
        out=tmp_path,
    )
    error = record.metrics["squared_error"].median
    least = record.floor["squared_error"].median
    assert 0 < least < error
    floor = {"squared_error": np.full(16, least)}
    arithmetic = Arithmetic("float64", {"squared_error": "squared"}, 1.0, floor)
    tolerance = arithmetic.tolerance()
    assert tolerance.holds("squared_error", error, 2 * error)
    assert not tolerance.holds("squared_error", 1e-20, 2e-20)
