"""A job: memory of earlier programs, plugins that exit, and a checkpoint it can't continue."""

from __future__ import annotations

import errno
import gc
import json
import signal
import weakref
from pathlib import Path

import pytest
import torch

from iclbench import RecordStore, sweep
from iclbench.api.errors import Interrupted
from iclbench.files import require_writable
from iclbench.runs.exclusive import alone
from iclbench.runs.settings import Settings
from iclbench.sweeps import jobs
from iclbench.sweeps.campaign.run import run_cell
from iclbench.sweeps.jobs import forget_programs, job_of, run_job
from iclbench.sweeps.sweep import plan_sweep
from iclbench.training.interruption import SIGNALS, deferred
from iclbench_solvers.simple import Averaging, Zero


class Circular:
    def __init__(self):
        self.step = self.take

    def take(self):
        pass


def test_what_an_earlier_training_holds_on_a_gpu_is_freed(monkeypatch):
    gc.disable()
    try:
        earlier = weakref.ref(Circular())
        forget_programs(Settings())
        assert earlier() is not None, "a CPU does not wait for the collector"
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        forget_programs(Settings())
        assert earlier() is None
    finally:
        gc.enable()


def test_compiled_code_of_earlier_programs_is_forgotten(monkeypatch):
    resets = []
    monkeypatch.setattr(torch._dynamo, "reset", lambda: resets.append(1))
    forget_programs(Settings(engine="vmapped"))
    assert not resets
    forget_programs(Settings(engine="compiled"))
    assert resets


def leave(*_):
    raise SystemExit(0)


@pytest.mark.parametrize("method", ["supports", "build"])
def test_a_plugin_that_exits_fails_its_own_cell(tmp_path, monkeypatch, method):
    """It exits while the cell is planned, or while it runs."""
    monkeypatch.setattr(Averaging, method, leave)
    defaults = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4}, "eval_prompts": 8}
    result = sweep({"defaults": defaults, "grid": [{"model": ["averaging", "zero"]}]}, out=tmp_path)
    assert [record.spec.model for record in result.records] == [Zero.name]
    assert [failure.reason for failure in result.failures] == ["SystemExit: 0"]


@pytest.mark.parametrize("budget", [None, "1s"])
def test_a_checkpoint_of_other_code_fails_its_group_and_trains_no_cell_alone(
    tmp_path, monkeypatch, budget
):
    defaults = {
        "task": "least-squares",
        "task_args": {"dim": 2, "examples": 4},
        "recipe": "smoke",
        "seeds": 1,
        "eval_prompts": 8,
        **({"budget": budget} if budget else {"recipe_args": {"steps": 3}}),
    }
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3]}}
    _, (group,) = plan_sweep({"defaults": defaults, "grid": [grid]}, out=tmp_path)
    job = job_of([json.loads(cell.request) for cell in group], Settings(tmp_path))

    def cut(*args):
        raise Interrupted(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("iclbench.runs.run.evaluate_and_record", cut)
        with pytest.raises(Interrupted):
            run_job(job)
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.safetensors")
    with monkeypatch.context() as patch:
        patch.setattr("iclbench.runs.training.training_code", lambda plans: {"torch": "other"})
        reasons = run_job(job)
    assert len(set(reasons)) == 1
    assert "delete it to start afresh" in reasons[0]
    assert not list(RecordStore(tmp_path).paths())
    with alone(checkpoint):
        reasons = run_job(job)
    assert len(set(reasons)) == 1
    assert "another process is training this run" in reasons[0]
    assert not list(RecordStore(tmp_path).paths())
    assert checkpoint.exists()
    assert run_job(job) == [None, None]


def two_cells(out):
    """The job of two runs that train together."""
    defaults = {"task": "least-squares", "task_args": {"dim": 2, "examples": 4},
                "recipe": "smoke", "seeds": 1, "eval_prompts": 8}  # fmt: skip
    grid = {"model": "baseconv", "recipe_args": {"learning_rate": [1e-3, 2e-3], "steps": 3}}
    _, (group,) = plan_sweep({"defaults": defaults, "grid": [grid]}, out=out)
    return job_of([json.loads(cell.request) for cell in group], Settings(out))


@pytest.mark.parametrize("where", ["run_plans", "_without_record"])
@pytest.mark.parametrize(
    ("error", "alone"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "file"), False),
        (OSError(errno.ESTALE, "Stale file handle"), False),
        (FileNotFoundError("a cell's file"), True),
        (OSError(errno.ESHUTDOWN, "Cannot send after transport endpoint shutdown"), False),
        (OSError(errno.ECONNREFUSED, "Connection refused"), True),
        (OSError("can't load a tokenizer"), True),
    ],
)
def test_where_files_fail_no_cell_is_trained_alone(tmp_path, monkeypatch, where, error, alone):
    job = two_cells(tmp_path)
    started = []

    def fail(plans, settings):
        started.append(len(plans))
        raise error

    monkeypatch.setattr(jobs, where, fail)
    reasons = run_job(job)
    assert started == ([2, 1, 1] if alone else [2])
    assert len(reasons) == 2
    assert all((error.strerror or str(error)) in reason for reason in reasons)


def test_a_folder_that_cannot_be_written_once_keeps_cells_together(tmp_path, monkeypatch):
    job, started = two_cells(tmp_path), []

    def refuse(plans, settings):
        started.append(len(plans))
        (tmp_path / "file").touch()
        with monkeypatch.context() as patch:
            patch.setattr(Path, "touch", stale)
            require_writable(tmp_path)

    monkeypatch.setattr(jobs, "run_plans", refuse)
    reasons = run_job(job)
    assert started == [2]
    assert all("can't be written: Stale file handle" in reason for reason in reasons)


def stale(*_, **__):
    raise OSError(errno.ESTALE, "Stale file handle")


def take_two_signals(*_):
    """A terminal's Ctrl-C, and the SIGTERM of an executor that passes it on."""
    with deferred() as received:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert received() == signal.SIGINT


@pytest.fixture
def default_handlers():
    """Python's handlers, again afterwards: after a signal, those of the block stay."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("default_handlers")
@pytest.mark.parametrize("work", ["job", "cell"])
def test_a_second_signal_does_not_end_a_job_before_its_checkpoint(tmp_path, monkeypatch, work):
    monkeypatch.setattr(jobs, "_run_together", take_two_signals)
    monkeypatch.setattr("iclbench.sweeps.campaign.run._run_sweep", take_two_signals)
    job = job_of([], Settings(tmp_path))
    if work == "job":
        run_job(job)
    else:
        run_cell({**job, "until": None, "does": "sweep"})


def short_memory():
    """The error of torch where a CPU's memory is short."""
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:116] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4000000000 bytes. Error code 12 (Cannot allocate memory)"
    )


@pytest.mark.parametrize(
    "error",
    [
        short_memory(),
        MemoryError(),
        torch.OutOfMemoryError("CUDA"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_with_short_memory_a_program_is_run_in_halves(tmp_path, monkeypatch, error):
    sizes = []

    def run(plans, settings):
        sizes.append(len(plans))
        if len(plans) > 2:
            raise error

    monkeypatch.setattr(jobs, "run_plans", run)
    request = {"model": "zero", "task": "least-squares"}
    requests = [{**request, "eval_seed": seed} for seed in range(4)]
    assert run_job(job_of(requests, Settings(tmp_path))) == [None] * 4
    assert sizes == [4, 2, 2]


def test_after_a_lost_gpu_no_part_of_a_program_is_tried_in_the_same_process(tmp_path, monkeypatch):
    sizes = []

    def run(plans, settings):
        sizes.append(len(plans))
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(jobs, "run_plans", run)
    monkeypatch.setattr(jobs, "gpu_is_usable", lambda: False)
    requests = [{"model": "zero", "task": "least-squares", "eval_seed": seed} for seed in range(4)]
    outcomes = run_job(job_of(requests, Settings(tmp_path)))
    assert all("illegal memory access" in outcome for outcome in outcomes)
    assert sizes == [4]
