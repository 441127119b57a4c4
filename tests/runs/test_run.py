"""A run from spec to record, its hooks, and equal results for equal seeds."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import torch
from small_runs import TINY, weights_of

from iclbench import (
    RecordStore,
    RunError,
    RunSpec,
    UsageError,
    hookimpl,
    run,
)
from iclbench.api.errors import Interrupted
from iclbench.plugins import host
from iclbench.runs import run as run_module
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.store import read_record, read_values
from iclbench.training.checkpoints import load_weights
from iclbench.training.loop import Training
from iclbench_least_squares.fixed import LeastSquares
from iclbench_solvers.simple import Averaging


def test_a_solver_s_record(tmp_path):
    record = run(model="zero", **TINY, out=tmp_path)
    assert record.spec.origin == "solver"
    assert record.spec.seeds == ()
    assert record.spec.recipe == ""
    assert record.parameters == 0
    assert record.training is None
    assert [seed.seed for seed in record.seeds] == [None]
    assert {p.name for p in record.plugins} == {"iclbench", "solvers", "least-squares"}
    assert record.floor["squared_error"].median < 1e-10


def test_a_trained_model_s_record(tmp_path):
    record = run(model="transformer", **TINY, out=tmp_path)
    assert record.spec.origin == "trained"
    assert [seed.seed for seed in record.seeds] == [0, 1]
    assert record.training.replicas == 2
    assert record.training.steps == 20
    assert record.training.curve_steps[-1] == 20
    assert len(record.training.curve[0]) == 2
    assert record.environment.versions["torch"] == torch.__version__
    path = RecordStore(tmp_path).path(record.spec)
    values = read_values(path, record.main.values)["squared_error"]
    assert values.shape == (2, 64)
    assert record.metrics["squared_error"].mean == pytest.approx(values.mean())
    assert record.main.seeds[1]["squared_error"].median == pytest.approx(np.median(values[1]))
    assert set(load_weights(weights_of(tmp_path, record)).states) == {0, 1}
    assert not list(tmp_path.glob("checkpoints/*"))


def test_prefixes_have_their_curve(tmp_path):
    args = {**TINY, "task": "least-squares-prefixes"}
    record = run(model="least-squares-qr", **args, out=tmp_path)
    curve = record.curves["prefix_error"]
    assert curve.axis == "prefix"
    assert curve.values == [0, 1, 2, 3, 4]
    floor = record.main.floor.curves["prefix_error"].mean
    assert curve.mean[:2] == pytest.approx(floor[:2], rel=1e-5)
    assert all(error >= best > 0 for error, best in zip(curve.mean[2:], floor[2:], strict=True))
    assert curve.mean[0] > 0.5
    assert max(curve.mean[2:]) < 1e-6


def test_the_same_seed_gives_the_same_record(tmp_path):
    a = run(model="baseconv", **TINY, out=tmp_path / "a")
    b = run(model="baseconv", **TINY, out=tmp_path / "b")
    assert a.id == b.id
    assert a.metrics == b.metrics
    assert a.weights_file.sha256 == b.weights_file.sha256


def test_seeds_differ_and_evaluation_does_not(tmp_path):
    a = run(model="baseconv", **{**TINY, "seeds": [0]}, out=tmp_path)
    b = run(model="baseconv", **{**TINY, "seeds": [1]}, out=tmp_path)
    assert a.metrics != b.metrics
    assert a.main.digest == b.main.digest
    assert a.floor == b.floor


def test_a_tracker_hears_how_a_run_ends(tmp_path, provide):
    class Failing(Averaging):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    class Tracker:
        heard = []

        @hookimpl
        def iclbench_run_started(self, spec):
            self.heard.append(("started", spec.model))

        @hookimpl
        def iclbench_training_step(self, spec, step, loss):
            self.heard.append(("step", len(loss)))

        @hookimpl
        def iclbench_run_finished(self, spec, record):
            self.heard.append(("finished", record.id == spec.id))

        @hookimpl
        def iclbench_run_failed(self, spec, error):
            self.heard.append(("failed", str(error)))

    provide("model", "failing", Failing)
    tracker = Tracker()
    with host().observing(tracker, "tracker"):
        run(model="baseconv", **{**TINY, "recipe_args": {"steps": 1}}, out=tmp_path)
        with pytest.raises(RuntimeError):
            run(model="failing", **TINY, out=tmp_path)
    assert tracker.heard == [
        ("started", "baseconv"),
        ("step", 2),
        ("finished", True),
        ("started", "failing"),
        ("failed", "no luck"),
    ]


def two_rates():
    """Two plans that are trained as one program."""
    rates = [{"learning_rate": rate} for rate in (1e-3, 2e-3)]
    return [resolve(RunSpec(model="baseconv", **TINY, recipe_args=rate)) for rate in rates]


def test_what_is_cut_off_between_two_evaluations_is_not_trained_again(
    tmp_path, monkeypatch, capsys
):
    straight = run_plans(two_rates(), Settings(tmp_path / "straight"))
    evaluated = run_module.evaluate_and_record

    def cut(plan, *rest):
        if plan.spec.recipe_args["learning_rate"] == 2e-3:
            raise Interrupted(signal.SIGTERM)
        return evaluated(plan, *rest)

    out = tmp_path / "cut"
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "evaluate_and_record", cut)
        with pytest.raises(Interrupted):
            run_plans(two_rates(), Settings(out))
    assert not list(RecordStore(out).paths())
    capsys.readouterr()
    records = run_plans(two_rates(), Settings(out))
    assert f"continuing from step {records[0].training.steps} of" in capsys.readouterr().err
    assert [r.weights_file for r in records] == [r.weights_file for r in straight]
    assert not list(out.glob("checkpoints/*"))


@pytest.mark.parametrize("where", ["evaluated", "written"])
def test_a_plan_that_fails_takes_no_other_s_record_with_it(tmp_path, monkeypatch, where):
    evaluated, write, heard = run_module.evaluate_and_record, RecordStore.write, []

    class Ends:
        @hookimpl
        def iclbench_run_finished(self, spec):
            heard.append(("finished", spec.recipe_args["learning_rate"]))

        @hookimpl
        def iclbench_run_failed(self, spec):
            heard.append(("failed", spec.recipe_args["learning_rate"]))

    def unlucky(spec, at):
        if where == at and spec.recipe_args["learning_rate"] == 1e-3:
            raise RunError("no luck")

    def failing(plan, *rest):
        unlucky(plan.spec, "evaluated")
        return evaluated(plan, *rest)

    def failing_write(self, record):
        unlucky(record.spec, "written")
        return write(self, record)

    monkeypatch.setattr(run_module, "evaluate_and_record", failing)
    monkeypatch.setattr(RecordStore, "write", failing_write)
    ends = Ends()
    with host().observing(ends, "tracker"), pytest.raises(RunError, match="no luck"):
        run_plans(two_rates(), Settings(tmp_path))
    assert heard == [("finished", 2e-3), ("failed", 1e-3)]
    (path,) = RecordStore(tmp_path).paths()
    assert read_record(path).spec.recipe_args["learning_rate"] == 2e-3


@pytest.mark.parametrize("fault", ["no primary metric", "targets without positions"])
def test_a_task_that_does_not_fit_leaves_no_record(tmp_path, provide, fault):
    class Faulty(LeastSquares):
        name = "faulty"

        def metrics(self, prediction, batch):
            errors = super().metrics(prediction, batch)
            return {"other": errors["squared_error"]} if "primary" in fault else errors

        def evaluation_batches(self, n, seed, dtype):
            batches = super().evaluation_batches(n, seed, dtype)
            return (
                [b._replace(target=b.target[:, 0]) for b in batches] if "out" in fault else batches
            )

    provide("task", "faulty", Faulty)
    with pytest.raises((RunError, UsageError), match=r"ranks by squared_error|targets are"):
        run(model="zero", **{**TINY, "task": "faulty"}, out=tmp_path)
    assert not list(tmp_path.glob("*/*.json"))


def test_a_task_without_what_it_ranks_by_is_refused_before_training(tmp_path, provide, monkeypatch):
    class Faulty(LeastSquares):
        name = "faulty"

        def metrics(self, prediction, batch):
            return {"other": super().metrics(prediction, batch)["squared_error"]}

    provide("task", "faulty", Faulty)
    monkeypatch.setattr(Training, "run", None)
    with pytest.raises(RunError, match="faulty ranks by squared_error, not in other"):
        run(model="baseconv", **{**TINY, "task": "faulty"}, out=tmp_path)


@pytest.mark.gpu
def test_a_gpu_gives_what_the_cpu_gives(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    args = {**TINY, "dtype": "float64"}
    gpu = run(model="least-squares-qr", **args, out=tmp_path / "gpu", device="cuda")
    cpu = run(model="least-squares-qr", **args, out=tmp_path / "cpu", device="cpu")
    assert gpu.metrics["squared_error"].median < 1e-26
    assert gpu.main.digest == cpu.main.digest
    trained = run(model="baseconv", **args, out=tmp_path / "gpu", device="cuda")
    assert trained.environment.device != "cpu"
