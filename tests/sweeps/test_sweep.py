"""Sweeps: programs, existing records, and failures that stop nothing."""

from __future__ import annotations

import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from iclbench import Executor, RecordStore, UsageError, hookimpl, host, sweep
from iclbench.api.errors import Interrupted
from iclbench.runs import run as run_module
from iclbench.runs.run import run_plans
from iclbench.sweeps import jobs as jobs_module

DEFAULTS = {
    "task": "least-squares",
    "task_args": {"dim": 2, "examples": 4},
    "recipe": "smoke",
    "recipe_args": {"steps": 3},
    "seeds": 2,
    "eval_prompts": 32,
}


def test_learning_rates_and_seeds_train_as_one_program(tmp_path):
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 4e-3]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert [r.training.replicas for r in result.records] == [6, 6, 6]
    assert len({r.id for r in result.records}) == 3


def test_programs_have_at_most_the_replicas_that_are_allowed(tmp_path):
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 4e-3]}}
    result = sweep({"replicas": 4, "defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert sorted(r.training.replicas for r in result.records) == [2, 4, 4]


def test_existing_records_are_skipped(tmp_path):
    grid = {"model": ["zero", "averaging"]}
    first = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    RecordStore(tmp_path).path(first.records[0].spec).unlink()
    again = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert again.already_done == 1
    assert again.records[1] == first.records[1]
    assert [r.metrics for r in again.records] == [r.metrics for r in first.records]


def test_one_failing_cell_stops_nothing(tmp_path):
    grids = [
        {"model": ["zero", "transformer"], "model_args": {"heads": [3]}},
        {"model": ["nonesuch", "averaging"]},
    ]
    result = sweep({"defaults": DEFAULTS, "grid": grids}, out=tmp_path)
    assert [r.spec.model for r in result.records] == ["averaging"]
    reasons = " ".join(f.reason for f in result.failures)
    assert len(result.failures) == 3
    assert "do not divide" in reasons
    assert "unknown model 'nonesuch'" in reasons


def test_cells_that_fail_for_one_reason_are_one_line(tmp_path):
    said = []
    grid = {
        "model": ["zero", "averaging"],
        "task": ["nonesuch", "least-squares"],
        "eval_seed": [1, 2],
    }
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path, report=said.append)
    assert len(result.failures) == 4
    (line,) = [line for line in said if line.startswith("can't be run")]
    assert line.endswith("(3 more like this)")


@pytest.mark.parametrize("name", ["model_args.layrs", "task_args.dims"])
def test_a_figure_of_arguments_that_no_cell_has_is_refused_before_any_runs(tmp_path, name):
    grid = {"model": ["zero", "transformer"]}
    content = {"defaults": DEFAULTS, "grid": [grid], "figure": {"x": name}}
    with pytest.raises(UsageError, match=f"did you mean '{name[:-1].split('.')[1][:3]}"):
        sweep(content, out=tmp_path)
    assert not list(tmp_path.rglob("*.json"))


def test_a_cell_that_fails_while_it_runs_is_reported(tmp_path, provide):
    from iclbench_solvers.simple import Averaging

    class Failing(Averaging):
        name = "failing"

        def weights(self, examples, config):
            raise RuntimeError("no luck")

    provide("model", "failing", Failing)
    lines = []
    result = sweep(
        {"defaults": DEFAULTS, "grid": [{"model": ["failing", "averaging"]}]},
        out=tmp_path,
        report=lines.append,
    )
    assert [r.spec.model for r in result.records] == ["averaging"]
    assert [f.reason for f in result.failures] == ["RuntimeError: no luck"]
    assert "--model failing" in result.failures[0].command
    assert lines[-1].endswith("done")


def test_a_cell_that_fails_in_a_program_leaves_the_others_their_records(tmp_path):
    """One learning rate's record can't be written; the other's is."""
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3]}}
    content = {"defaults": DEFAULTS, "grid": [grid]}
    first, second = sweep(content, out=tmp_path / "a").records
    blocked = RecordStore(tmp_path / "b").path(second.spec)
    blocked.mkdir(parents=True)
    result = sweep(content, out=tmp_path / "b")
    assert len(result.failures) == 1
    assert "0.002" in result.failures[0].command
    assert [r.id for r in result.records] == [first.id]


def test_a_stage_s_line_counts_runs_and_failures_have_their_own(tmp_path):
    grids = [{"model": ["nonesuch", "zero"]}]
    lines = []
    sweep({"defaults": DEFAULTS, "grid": grids}, out=tmp_path, report=lines.append)
    assert lines[0].startswith("can't be run: iclbench run --model nonesuch")
    assert lines[1] == "1 run: 0 skipped, 1 to run"
    with pytest.raises(UsageError, match="empty list"):
        sweep({"defaults": DEFAULTS, "grid": [{"model": []}]}, out=tmp_path)


@pytest.mark.slow
def test_several_workers_give_the_same_records(tmp_path):
    content = {"defaults": DEFAULTS, "grid": [{"model": ["baseconv", "zero"]}]}
    one = sweep(content, out=tmp_path / "a")
    two = sweep(content, out=tmp_path / "b", workers=2)
    assert [r.id for r in one.records] == [r.id for r in two.records]
    for a, b in zip(one.records, two.records, strict=True):
        assert a.metrics["squared_error"].mean == pytest.approx(
            b.metrics["squared_error"].mean, rel=1e-4
        )
    assert two.records[0].environment.threads == 1


def test_a_size_runs_by_its_name(tmp_path):
    content = {
        "defaults": {**DEFAULTS, "seeds": 1},
        "grid": [{"model": "zero"}],
        "sizes": {"small": {"grid": [{"model": "averaging"}]}},
    }
    result = sweep(content, out=tmp_path, size="small")
    assert [r.spec.model for r in result.records] == ["averaging"]


def test_numbers_that_replicas_can_vary_train_as_one_program(tmp_path):
    """Noise, condition number and initial scale: every cell's result is the same as alone."""
    grid = {
        "model": "baseconv",
        "model_args": {"init_std": [0.02, 0.1]},
        "task_args": {"noise": [0.0, 0.3], "condition_number": [None, 4.0]},
    }
    lines = []
    defaults = {**DEFAULTS, "dtype": "float64", "seeds": 1, "metrics": []}
    content = {"defaults": defaults, "grid": [_without_null(grid), _with_null(grid)]}
    result = sweep(content, out=tmp_path / "together", report=lines.append)
    assert not result.failures
    assert len({r.id for r in result.records}) == 8
    assert {r.training.replicas for r in result.records} == {8}
    assert all(r.training.speedup > 0 for r in result.records)
    assert any("8 models" in line and "times as fast as one by one" in line for line in lines)
    alone = sweep({**content, "replicas": 1}, out=tmp_path / "alone")
    for a, b in zip(result.records, alone.records, strict=True):
        assert (a.id, b.training.replicas) == (b.id, 1)
        assert a.training.curve[0] == pytest.approx(b.training.curve[0], rel=1e-9)
        assert a.metrics["squared_error"].mean == pytest.approx(
            b.metrics["squared_error"].mean, rel=1e-6
        )


def _without_null(grid):
    task_args = {**grid["task_args"], "condition_number": 4.0}
    return {**grid, "task_args": task_args}


def _with_null(grid):
    return {**grid, "task_args": {"noise": grid["task_args"]["noise"]}}


def test_what_changes_the_program_is_trained_separately(tmp_path):
    grid = {"model": "baseconv", "model_args": {"width": [8, 16]}, "task_args": {"noise": [0, 0.5]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert [r.training.replicas for r in result.records] == [4, 4, 4, 4]


def test_cells_are_run_in_halves_if_memory_is_short(tmp_path, monkeypatch):
    import torch

    import iclbench.sweeps.jobs as module

    sizes, run = [], module.run_plans

    def limited(plans, settings):
        sizes.append(len(plans))
        if len(plans) > 1:
            on_a_cpu = RuntimeError("DefaultCPUAllocator: can't allocate memory")
            raise on_a_cpu if len(plans) == 2 else torch.OutOfMemoryError("out of memory")
        return run(plans, settings)

    monkeypatch.setattr(module, "run_plans", limited)
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3, 3e-3]}}
    result = sweep({"defaults": DEFAULTS, "grid": [grid]}, out=tmp_path)
    assert sizes == [3, 2, 1, 1, 1]
    assert len(result.records) == 3
    assert not result.failures


class Threads(Executor):
    """Two jobs at once in threads of this process, which executors must not do."""

    name = "threads"

    def map(self, function, jobs, workers):
        with ThreadPoolExecutor(len(jobs)) as pool:
            yield from enumerate(pool.map(function, jobs))


def test_runs_in_threads_of_one_process_are_refused_and_mix_nothing(tmp_path, provide, monkeypatch):
    """The first run waits within itself until the others have been refused."""
    provide("executor", "threads", Threads)
    refused = threading.Semaphore(0)
    record = run_module.evaluate_and_record

    def wait(*args):
        assert refused.acquire(timeout=60)
        return record(*args)

    def count(plans, settings, run_plans=run_plans):
        try:
            return run_plans(plans, settings)
        except UsageError:
            refused.release()
            raise

    monkeypatch.setattr(run_module, "evaluate_and_record", wait)
    monkeypatch.setattr(jobs_module, "run_plans", count)
    grid = {"model": ["averaging", "zero"], "dtype": ["float64"]}
    content = {"defaults": DEFAULTS, "grid": [grid]}
    result = sweep(content, out=tmp_path, executor="threads")
    (failure,) = result.failures
    assert "this process is in the middle of another run" in failure.reason
    (together,) = result.records
    monkeypatch.undo()
    (_, *alone) = sorted(
        sweep(content, out=tmp_path / "alone").records, key=lambda r: r.id == together.id
    )
    assert [record.metrics for record in alone] == [together.metrics]


def test_an_interrupted_sweep_says_what_remains(tmp_path, monkeypatch):
    """A signal in the second of three runs; the first has a record."""
    grid = {"model": ["averaging", "zero", "ridge"]}
    content = {"defaults": DEFAULTS, "grid": [grid]}
    lines = []

    def report(line):
        lines.append(line)
        if "averaging" in line:
            signal.raise_signal(signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match=r"^2 of 3 runs remain$") as caught:
        sweep(content, out=tmp_path, report=report)
    assert caught.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) == before
    again = sweep(content, out=tmp_path)
    assert (again.already_done, len(again.records)) == (1, 3)


def test_an_interrupted_sweep_mentions_the_runs_that_need_weights(tmp_path):
    content = {
        "defaults": DEFAULTS,
        "grid": [{"name": "first", "model": "baseconv"}, {"model": "baseconv", "init": "@first"}],
    }

    class Raising:
        @hookimpl
        def iclbench_training_step(self, spec, step, loss):
            signal.raise_signal(signal.SIGINT)

    observer = Raising()
    with host().observing(observer, "raising"), pytest.raises(Interrupted) as caught:
        sweep(content, out=tmp_path)
    assert re.fullmatch(
        r"baseconv on least-squares saved at step \d of 3; "
        "1 of 1 runs remain, plus those that need their weights",
        str(caught.value),
    )
