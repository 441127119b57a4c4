"""The linear transformer: constructions, refused settings, analysis and training."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from linear_transformer_models import make_model, make_prompt, make_task

from iclbench import (
    UsageError,
    leaderboard,
    run,
    verify,
)
from iclbench.runs.store import read_record
from iclbench_linear_transformer.architecture import (
    LinearTransformer,
    LinearTransformerConfig,
)
from iclbench_linear_transformer.constructions import StepsConfig, leja
from iclbench_solvers.systems import Chebyshev, IterationsConfig, Richardson


def constructed(name, task, dtype, **args):
    construction = LinearTransformer.constructions[name]
    config, state = construction.build(task.signature, StepsConfig(**args), task)
    network = LinearTransformer().build(task.signature, LinearTransformerConfig(**config))
    network.to(dtype).load_state_dict(state)
    return network


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("steps", [1, 4, 12])
@pytest.mark.parametrize("start", ["zero", "normal"])
@pytest.mark.parametrize("n", [2, 9])
def test_the_richardson_construction_equals_richardson_step_by_step(n, start, steps, heads):
    task = make_task(sizes=n, start=start, scale=3.0)
    (batch,) = task.evaluation_batches(50, 0, torch.float64)
    network = constructed("richardson", task, torch.float64, steps=steps, heads=heads)
    # With one head, the first layer only copies A.
    path = network.trajectory(batch.prompt)[:, 2 - heads :]
    solver = Richardson().build(task.signature, IterationsConfig(steps=steps))
    torch.testing.assert_close(path, solver.trajectory(batch.prompt), rtol=1e-9, atol=1e-12)
    assert len(network.layers) == steps + 2 - heads


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 3e-6), (torch.float64, 1e-13)])
@pytest.mark.parametrize("steps", [1, 4, 10])
def test_the_chebyshev_construction_answers_as_chebyshev(steps, dtype, bound):
    task = make_task(sizes="2-9", condition_number=20)
    for batch in task.evaluation_batches(50, 0, dtype):
        network = constructed("chebyshev", task, dtype, steps=steps)
        solver = Chebyshev().build(task.signature, IterationsConfig(steps=steps))
        difference = network(batch.prompt) - solver(batch.prompt)
        assert difference.abs().max() < bound * math.sqrt(steps) * 10


@pytest.mark.parametrize("scale", [2.0**-40, 1e-6, 1e-2, 1e3, 1e6])
def test_the_order_of_chebyshev_s_steps_does_not_depend_on_scale(scale):
    """A product of 300 distances is beyond float64 at most scales."""
    nodes = [1.0 + math.cos(math.pi * (2 * k + 1) / 600) for k in range(300)]
    first, scaled = leja(nodes)[:50], leja([scale * node for node in nodes])[:50]
    # Nodes at the same distance are taken in either order.
    assert [2.0 - n if n > 1 else n for n in first] == pytest.approx(
        [2.0 - n / scale if n > scale else n / scale for n in scaled], rel=1e-6
    )


def test_constructions_serve_sizes_not_trained_on():
    task = make_task(sizes=3, evaluate="3,40")
    network = constructed("chebyshev", task, torch.float64, steps=30)
    for batch in task.evaluation_batches(10, 0, torch.float64):
        assert (network(batch.prompt) - batch.target).abs().max() < 1e-6


def test_unsupported_settings_are_refused(tmp_path):
    with pytest.raises(UsageError, match="built for one N"):
        run(model="linear-transformer", task="linear-system", model_args={"form": "full"},
            task_args={"sizes": "2-3"}, out=tmp_path)  # fmt: skip
    for task in ("linear-system", "least-squares"):
        with pytest.raises(UsageError, match="no learned embedding"):
            run(model="linear-transformer", task=task, model_args={"embedding": 3},
                out=tmp_path)  # fmt: skip
    with pytest.raises(UsageError, match="it needs a, b, size, x0"):
        run(model="linear-transformer", task="multiply", out=tmp_path)
    with pytest.raises(UsageError, match="low must not be above high"):
        run(model="linear-transformer", task="linear-system", weights="richardson",
            weights_args={"low": 2, "high": 1}, out=tmp_path)  # fmt: skip
    with pytest.raises(UsageError, match="low=2 is above high=1"):
        run(model="linear-transformer", task="linear-system", weights="richardson",
            weights_args={"low": 2}, out=tmp_path)  # fmt: skip
    with pytest.raises(UsageError, match="least-squares does not ask for the solution of systems"):
        run(model="linear-transformer", task="least-squares", weights="richardson", out=tmp_path)
    with pytest.raises(UsageError, match="several"):
        run(model="transformer", task="linear-system", task_args={"sizes": "2-3"}, out=tmp_path)
    network = make_model(make_task(sizes=4), form="full")
    with pytest.raises(ValueError, match="built for N = 4, not 5"):
        network(make_prompt(5))


@pytest.mark.parametrize("name", ["richardson", "chebyshev"])
def test_the_analysis_recovers_the_polynomial_of_a_construction(tmp_path, name):
    record = run(
        model="linear-transformer",
        task="linear-system",
        task_args={"sizes": "2-6"},
        weights=name,
        weights_args={"steps": 3},
        metrics=("krylov",),
        eval_prompts=16,
        dtype="float64",
        out=tmp_path,
    )
    (analysis,) = record.analyses["krylov"]
    points = np.asarray(analysis["eigenvalues"])
    assert points[[0, -1]] == pytest.approx([0.1, 1.0])
    last = analysis["layers"][-1]
    assert last["degree"] == 2
    assert last["misfit"][2] < 1e-27
    assert last["misfit"][1] > 1e-3
    if name == "chebyshev":
        expected = last["chebyshev_polynomial"]
        assert last["error"] == pytest.approx(last["chebyshev_error"], rel=1e-6)
    else:
        expected = (1 - points / 0.55) ** 3
    assert last["residual_polynomial"] == pytest.approx(list(expected), abs=1e-9)
    # A polynomial chosen per prompt beats one for all prompts, which beats one for the worst case.
    assert last["cg_error"] < last["best_error"] < last["chebyshev_error"]


def test_the_analysis_of_a_spectrum_of_one_point_and_several_sizes(tmp_path):
    args = {"sizes": "2-5", "condition_number": 1}
    record = run(model="linear-transformer", task="linear-system", weights="richardson",
                 weights_args={"steps": 30}, task_args=args, metrics=("krylov",),
                 eval_prompts=8, dtype="float64", out=tmp_path)  # fmt: skip
    layers = record.analyses["krylov"][0]["layers"]
    assert len(layers) == 30
    assert layers[-1]["error"] < 1e-20


def test_the_analysis_s_conjugate_gradients_reach_the_rounding_of_float64(tmp_path):
    """They are never behind Chebyshev's iteration, however many layers there are."""
    record = run(model="linear-transformer", task="linear-system", weights="chebyshev",
                 weights_args={"steps": 16}, task_args={"sizes": 20, "condition_number": 2},
                 metrics=("krylov",), eval_prompts=16, dtype="float64", out=tmp_path)  # fmt: skip
    for layer in record.analyses["krylov"][0]["layers"]:
        assert layer["cg_error"] < max(layer["chebyshev_error"], 1e-27)


def test_the_analysis_of_a_model_without_layers(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = run(model="richardson", task="linear-system", model_args={"steps": 0},
                     metrics=("krylov",), eval_prompts=4, out=tmp_path)  # fmt: skip
    assert record.analyses["krylov"][0]["layers"] == []


def test_training_learns_and_a_second_run_starts_from_its_weights(tmp_path):
    options = {"model": "linear-transformer", "task": "linear-system", "eval_prompts": 64}
    small = {"steps": 150, "warmup": 20}
    first = run(**options, task_args={"sizes": "2-4", "evaluate": "2-6"}, recipe="quick",
                recipe_args=small, seeds=2, out=tmp_path)  # fmt: skip
    one_step = run(**options, task_args={"sizes": "2-6"}, weights="richardson",
                   weights_args={"steps": 1}, out=tmp_path)  # fmt: skip
    assert first.metrics["squared_error"].median < one_step.metrics["squared_error"].median
    assert first.curves["squared_error_by_size"].values == [2, 3, 4, 5, 6]
    (path,) = tmp_path.rglob(first.weights_file.name)
    second = run(
        **options,
        task_args={"sizes": "5-6", "evaluate": "2-6"},
        recipe="quick",
        recipe_args={**small, "steps": 20},
        init=str(path),
        seeds=2,
        out=tmp_path,
    )
    assert second.spec.init == path.name
    assert second.spec.checkpoint_digest is not None


def test_analyses_are_verified_and_training_sizes_share_a_board(tmp_path):
    options = {"model": "linear-transformer", "task": "linear-system", "eval_prompts": 32,
               "recipe": "quick", "recipe_args": {"steps": 3}, "out": tmp_path}  # fmt: skip
    for sizes in ("2-3", "3"):
        run(**options, task_args={"sizes": sizes, "evaluate": "3,4"}, metrics=("krylov",), seeds=2)
    (board,) = leaderboard(tmp_path)
    labels = [row.label for row in board.rows]
    assert sorted(labels) == [
        "linear-transformer sizes=2-3",
        "linear-transformer sizes=3",
    ]
    path = next((tmp_path / "linear-system").glob("*.json"))
    checks = verify(path)
    assert all(check.holds for check in checks)
    assert any(check.name == "analysis krylov 1 layers 3 degree" for check in checks)
    record = read_record(path)
    forged = record.model_copy(deep=True)
    forged.analyses["krylov"][1]["layers"][3]["error"] *= 2
    path.write_text(forged.sealed().model_dump_json(), "utf-8")
    failed = [check.name for check in verify(path) if not check.holds]
    assert failed == ["analysis krylov 1 layers 3 error"]
