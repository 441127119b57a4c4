"""Training several plans as one program, and seeds that diverge."""

from __future__ import annotations

import gc
import json
import re
import signal

import numpy as np
import pytest
import torch
from small_runs import TINY

from iclbench import (
    RecordStore,
    RunSpec,
    UsageError,
    hookimpl,
    host,
    run,
)
from iclbench.api.errors import Interrupted
from iclbench.runs import run as run_module
from iclbench.runs.plan import resolve
from iclbench.runs.run import run_plans
from iclbench.runs.settings import Settings
from iclbench.runs.training import train
from iclbench.training.loop import Training


def test_a_diverged_seed_is_in_the_record(tmp_path):
    args = {**TINY, "recipe_args": {"optimizer": "sgd", "learning_rate": 1e30}}
    record = run(model="transformer", **args, out=tmp_path)
    assert all(seed.diverged_at is not None for seed in record.seeds)
    assert record.training.steps == record.training.curve_steps[-1] > 0
    json.loads(RecordStore(tmp_path).path(record.spec).read_text(), parse_constant=pytest.fail)


def plans_of(*rates):
    specs = [{**TINY, "recipe_args": {"learning_rate": rate}} for rate in rates]
    return [resolve(RunSpec(model="baseconv", **spec)) for spec in specs]


def test_learning_rates_are_replicas_of_one_program(tmp_path):
    plans = plans_of(1e-3, 1e-2)
    together = run_plans(plans, Settings(tmp_path / "a"))
    assert [record.training.replicas for record in together] == [4, 4]
    assert together[0].training.seconds == together[1].training.seconds
    for plan, record in zip(plans, together, strict=True):
        (alone,) = run_plans([plan], Settings(tmp_path / "b"))
        assert alone.id == record.id
        np.testing.assert_allclose(alone.training.curve, record.training.curve, rtol=1e-3)


def test_a_divergence_is_of_its_own_plan_in_a_program_of_several(tmp_path, monkeypatch):
    update = Training.update

    def diverging(self, batch, factor, step):
        if int(step) == 3:
            self.replicas.flat[3, 0] = float("nan")
        return update(self, batch, factor, step)

    monkeypatch.setattr(Training, "update", diverging)
    records = run_plans(plans_of(1e-3, 2e-3), Settings(tmp_path, device="cpu"))
    lost = [[seed.diverged_at for seed in record.seeds] for record in records]
    assert lost == [[None, None], [None, 2]]


def test_each_model_of_a_program_is_checked():
    """They may differ in how they start."""
    specs = [dict(**TINY, model_args={"init_std": std}) for std in (0.1, 1e30)]
    plans = [resolve(RunSpec(model="baseconv", **spec)) for spec in specs]
    for order in (plans, plans[::-1]):
        with pytest.raises(
            UsageError, match="least-squares: its predictions before training are not finite"
        ):
            next(train(order, Settings(device="cpu"), torch.device("cpu")))


def test_runs_in_another_order_continue_from_their_own_state(tmp_path, monkeypatch):
    """They differ only in how their parameters start, as a sweep's may."""
    plans = [
        resolve(RunSpec(model="transformer", **{**TINY, "model_args": {"init_std": value}}))
        for value in (0.02, 0.2)
    ]
    settings = Settings(tmp_path / "cut", device="cpu", checkpoint_seconds=0)
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "evaluate_and_record", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_plans(plans, settings)
    monkeypatch.setattr(Training, "advance", pytest.fail)
    again = run_plans(plans[::-1], settings)
    monkeypatch.undo()
    straight = run_plans(plans, Settings(tmp_path / "straight", device="cpu"))
    assert [r.weights_file.sha256 for r in again[::-1]] == [r.weights_file.sha256 for r in straight]
    assert again[0].weights_file != again[1].weights_file


def interrupt(*_):
    raise KeyboardInterrupt


def test_an_interrupted_run_tells_its_observers_and_continues(tmp_path, capsys):
    class Interrupting:
        failures = []

        @hookimpl
        def iclbench_training_step(self, spec, step, loss):
            signal.raise_signal(signal.SIGINT)

        @hookimpl
        def iclbench_run_failed(self, spec, error):
            self.failures.append(error)

    observer = Interrupting()
    with host().observing(observer, "interrupting"), pytest.raises(Interrupted) as caught:
        run(model="baseconv", **TINY, out=tmp_path, checkpoint_seconds=1e9)
    saved = re.fullmatch(r"baseconv on least-squares saved at step (\d+) of 20", str(caught.value))
    assert observer.failures == [caught.value]
    resumed = run(model="baseconv", **TINY, out=tmp_path)
    assert f"continuing from step {saved[1]} of " in capsys.readouterr().err
    straight = run(model="baseconv", **TINY, out=tmp_path / "straight")
    assert resumed.metrics == straight.metrics
    assert not list((tmp_path / "checkpoints").glob("*"))


@pytest.mark.gpu
def test_a_training_is_forgotten_before_its_models_are_evaluated_on_a_gpu(tmp_path, monkeypatch):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    measure, left = run_module.measure, []

    def observed(*args, **kwargs):
        left.append(sum(type(value) is Training for value in gc.get_objects()))
        return measure(*args, **kwargs)

    gc.collect()
    monkeypatch.setattr(run_module, "measure", observed)
    run(model="transformer", **TINY, out=tmp_path, device="cuda")
    assert left == [0]
