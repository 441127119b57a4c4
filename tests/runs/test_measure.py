"""Measuring: requested metrics, missing floors, the size of evaluation batches."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small_runs import TINY, Doubled

from iclbench import (
    Axis,
    RecordStore,
    RunError,
    RunSpec,
    UsageError,
    leaderboard,
    load_task,
    run,
    verify,
)
from iclbench.runs.measure import _target_size, analyse, measure
from iclbench.runs.models import Model, initial_module
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_values
from iclbench_least_squares.fixed import LeastSquares


@pytest.mark.parametrize("eval_batch", [1, 7, 4096])
@pytest.mark.parametrize("model", ["transformer", "baseconv", "least-squares-qr"])
def test_the_evaluation_batch_changes_nothing_beyond_the_last_bits(tmp_path, eval_batch, model):
    """Errors, the roots of squared errors, move by at most 2e-6; targets have sizes 1 to 5."""
    plan = resolve(RunSpec(model=model, **{**TINY, "eval_prompts": 300}))
    values = []
    for size, folder in ((64, "a"), (eval_batch, "b")):
        (record,) = run_plans([plan], Settings(tmp_path / folder, eval_batch=size))
        path = RecordStore(tmp_path / folder).path(record.spec)
        values.append(np.sqrt(read_values(path, record.main.values)["squared_error"]))
    if model == "least-squares-qr":
        np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[0], values[1], rtol=0, atol=2e-6)


@pytest.mark.parametrize(("asked", "expected"), [(None, [128, 128, 44]), (200, [200, 100])])
def test_a_model_is_evaluated_on_128_prompts_at_once_on_a_cpu(asked, expected):
    plan = resolve(RunSpec(model="transformer", **{**TINY, "eval_prompts": 300}))
    model = Model(0, initial_module(plan, 0))
    sizes: list[int] = []
    model.module.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0][0])))
    measure(plan, [model], torch.device("cpu"), asked)
    assert sizes[: len(expected)] == expected


@pytest.mark.parametrize(("asked", "most"), [(None, 128), (50, 50)])
def test_analyses_see_as_many_prompts_at_once(asked, most):
    args = {"task": "categorical", "task_args": {"dim": 4, "examples": 6}, "recipe": "smoke"}
    plan = resolve(RunSpec(model="transformer", metrics=("calibration",), eval_prompts=300, **args))
    model = Model(0, initial_module(plan, 0))
    sizes: list[int] = []
    model.module.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0][0])))
    assert analyse(plan, [model], torch.device("cpu"), asked)["calibration"]
    assert (max(sizes), sum(sizes)) == (most, 300)


def test_further_metrics_are_measured(tmp_path, provide):
    provide("metric", "doubled", Doubled)
    record = run(model="zero", **TINY, metrics=["doubled"], out=tmp_path)
    assert record.metrics["doubled"].mean == pytest.approx(2 * record.metrics["squared_error"].mean)
    assert record.id != run(model="zero", **TINY, out=tmp_path).id
    with pytest.raises(UsageError, match="doubled does not apply"):
        run(model="zero", **{**TINY, "task": "least-squares-prefixes"}, metrics=["doubled"])


def test_a_further_metric_may_have_an_axis(tmp_path, provide):
    class Twofold(Doubled):
        name = "twofold"

        def axes(self, model):
            return {"twofold": Axis("times", (1.0, 2.0))}

        def compute(self, model, task, batch, context):
            error = task.evaluate(model, batch, context)["squared_error"]
            return {"twofold": torch.stack([error, 2 * error], dim=1)}

    provide("metric", "twofold", Twofold)
    record = run(model="zero", **TINY, metrics=["twofold"], out=tmp_path)
    curve = record.curves["twofold"]
    assert (curve.axis, curve.values) == ("times", [1, 2])
    assert curve.mean[1] == pytest.approx(2 * curve.mean[0])
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


def test_a_metric_cannot_replace_one_of_the_task(tmp_path, provide):
    class Impostor(Doubled):
        name = "impostor"

        def compute(self, model, task, batch, context):
            return {"squared_error": torch.zeros(len(batch.target)).double()}

    provide("metric", "impostor", Impostor)
    with pytest.raises(RunError, match="measured twice"):
        run(model="zero", **TINY, metrics=["impostor"], out=tmp_path)
    assert not list(tmp_path.glob("*/*.json"))


def test_a_task_without_a_reference_has_no_floor(tmp_path, provide):
    class Floorless(LeastSquares):
        name = "floorless"

        def floor(self, batch, context):
            return {}

    provide("task", "floorless", Floorless)
    record = run(model="zero", **{**TINY, "task": "floorless"}, out=tmp_path)
    assert record.floor == {}
    (board,) = leaderboard(tmp_path)
    assert board.floor is None
    assert all(check.holds for check in verify(RecordStore(tmp_path).path(record.spec)))


@pytest.mark.parametrize(
    "task", ["least-squares", "ridge", "linear-system", "categorical", "multiply", "stories"]
)
def test_parts_of_an_evaluation_set_are_the_set(task):
    """Prompts that are made a few at a time are those that are made all at once."""
    task = load_task(task)
    whole = task.evaluation_batches(20, 0, torch.float32)
    parts = list(task.evaluation_parts(20, 0, torch.float32, rows=7))
    assert len(parts) == (1 if task.name == "stories" else 3)
    for index, batch in enumerate(whole):
        for name, values in [("target", batch.target), *batch.prompt._asdict().items()]:
            pieces = [
                part[index].target if name == "target" else getattr(part[index].prompt, name)
                for part in parts
            ]
            torch.testing.assert_close(torch.cat(pieces), values, rtol=1e-6, atol=0, equal_nan=True)


def test_a_run_in_parts_has_the_values_of_a_run_at_once(tmp_path, monkeypatch):
    whole = run(model="zero", **TINY, out=tmp_path / "whole")
    monkeypatch.setattr("iclbench.runs.shared_prompts.PART_PROMPTS", 10)
    parts = run(model="zero", **TINY, out=tmp_path / "parts")
    a, b = (
        read_values(RecordStore(tmp_path / folder).path(whole.spec), record.main.values)
        for folder, record in (("whole", whole), ("parts", parts))
    )
    np.testing.assert_allclose(a["squared_error"], b["squared_error"], rtol=1e-12)
    assert whole.main.digest == parts.main.digest


def test_the_size_of_targets_is_that_of_all_batches_together():
    batches = [SimpleNamespace(target=torch.full((4, 1), size)) for size in (1.0, 3.0)]
    assert _target_size(batches) == pytest.approx(5**0.5)
